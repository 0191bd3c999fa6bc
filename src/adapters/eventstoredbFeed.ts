import { setTimeout as sleep } from 'node:timers/promises'
import { START, streamNameFilter } from '@eventstore/db-client'
import type { AllStreamResolvedEvent, EventStoreDBClient, Position } from '@eventstore/db-client'
import type { FeedItem, SubscribeOptions } from '../ports.ts'
import type { Connection } from './eventstoredbConnection.ts'
import { Silence, isLost } from './eventstoredbErrors.ts'
import { received, storedEvent } from './eventstoredbRead.ts'

const CONFIRMATION_SILENCE_MS = 5000
const FEED_SILENCE_MS = 25_000
const RESUBSCRIBE_MS = 100
const RESUBSCRIBE_MAX_MS = 5000
const FEED_BUFFER_EVENTS = 256
/** In search windows of 32 events: how far a reader of rare events may lag behind after a restart. */
const CHECKPOINT_WINDOWS = 4
/** The streams of the store itself begin with a dollar sign. */
const NOT_SYSTEM = '^[^$]'

/** Re-subscribes behind the last item for as long as the signal allows, so that a reader sees one endless feed. */
export async function* subscribe(connection: Connection, options: SubscribeOptions): AsyncGenerator<FeedItem> {
  const { signal } = options
  let after = options.after
  let live = false
  for (let waitMs = RESUBSCRIBE_MS; !signal.aborted; waitMs = Math.min(waitMs * 2, RESUBSCRIBE_MAX_MS)) {
    const { client } = connection
    try {
      for await (const item of feed(client, { ...options, after })) {
        waitMs = RESUBSCRIBE_MS
        if (item.kind === 'caught_up' && live) continue
        live = item.kind === 'caught_up' || (live && item.kind === 'checkpoint')
        if (item.kind !== 'caught_up') after = positionOf(item)
        yield item
      }
    } catch (error) {
      if (signal.aborted) return
      if (!isLost(error)) throw error
      if (error instanceof Silence && error.limitMs < FEED_SILENCE_MS) connection.renew(client)
      if (!(error instanceof Silence)) live = false
    }
    await sleep(waitMs, undefined, { signal }).catch(() => undefined)
  }
}

const positionOf = (item: Exclude<FeedItem, { kind: 'caught_up' }>): bigint =>
  item.kind === 'event' ? item.event.position : item.position

/**
 * One subscription. Checkpoints and the end of catching up are reported by callbacks, ahead of events that are still
 * buffered; pushed into the same buffer they keep their place in the order.
 */
async function* feed(
  client: EventStoreDBClient,
  { after, categories, signal }: SubscribeOptions,
): AsyncGenerator<FeedItem> {
  let confirmed = false
  const checkpoints = {
    checkpointInterval: CHECKPOINT_WINDOWS,
    checkpointReached: (_: unknown, { commit }: Position): void => {
      subscription.push({ kind: 'checkpoint', position: commit } satisfies FeedItem)
    },
  }
  const filter =
    categories === undefined
      ? streamNameFilter({ regex: NOT_SYSTEM, ...checkpoints })
      : streamNameFilter({ prefixes: categories.map(name => `${name}-`), ...checkpoints })
  const fromPosition = after === 'start' || after === 0n ? START : { commit: after, prepare: after }
  const subscription = client.subscribeToAll({ fromPosition, filter }, { highWaterMark: FEED_BUFFER_EVENTS })
  subscription.on('confirmation', () => {
    confirmed = true
  })
  subscription.on('caughtUp', () => subscription.push({ kind: 'caught_up' } satisfies FeedItem))
  const silenceMs = (): number => (confirmed ? FEED_SILENCE_MS : CONFIRMATION_SILENCE_MS)
  try {
    for await (const item of received<FeedItem | AllStreamResolvedEvent>(subscription, { silenceMs, signal })) {
      if ('kind' in item) yield item
      else if (item.event !== undefined) yield { kind: 'event', event: storedEvent(item.event) }
    }
  } finally {
    void subscription.unsubscribe().catch(() => undefined)
  }
}
