import { setTimeout as sleep } from 'node:timers/promises'
import type { FeedItem, StoredEvent, SubscribeOptions } from '../../ports.ts'
import type { Client, Connection } from './connection.ts'
import { Silence, isLost, placed } from './errors.ts'
import { subscribeRequest } from './messages.ts'
import { received } from './read.ts'

const CONFIRMATION_SILENCE_MS = 5000
const FEED_SILENCE_MS = 25_000
const RESUBSCRIBE_MS = 100
const RESUBSCRIBE_MAX_MS = 5000

/**
 * Re-subscribes behind the last item for as long as the signal allows, so that a reader sees one endless feed, and tells of
 * each time that the store does not answer or refuses this service (StoreRefused): both may be mended while the reader
 * waits. Any other answer is thrown: the store understood what it was asked and will say the same again.
 */
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
        if (item.kind === 'event' || item.kind === 'checkpoint') after = positionOf(item)
        yield item
      }
    } catch (error) {
      if (signal.aborted) return
      const refused = await connection.refusalIn(error)
      if (refused === undefined && !isInterruption(error)) throw placed(error, after)
      if (error instanceof Silence && error.limitMs < FEED_SILENCE_MS) connection.renew(client)
      // A log in which nothing happens is silent too: that it was asked again is no interruption.
      if (!isQuiet(error)) {
        live = false
        yield { kind: 'interrupted', error: refused ?? error }
      }
    }
    await sleep(waitMs, undefined, { signal }).catch(() => undefined)
  }
}

const isQuiet = (error: unknown): boolean => error instanceof Silence && error.limitMs === FEED_SILENCE_MS

const UNKNOWN = 2
const INVALID_ARGUMENT = 3
/** Answers to what was asked, which the client classifies as it does a lost connection: by their gRPC status. */
const ANSWERS: ReadonlySet<unknown> = new Set([UNKNOWN, INVALID_ARGUMENT])

/** The connection was lost, or the store is going down or hung: not an answer to what was asked. */
const isInterruption = (error: unknown): boolean =>
  isLost(error) && !(error instanceof Error && 'code' in error && ANSWERS.has(error.code))

const positionOf = (item: Extract<FeedItem, { kind: 'event' | 'checkpoint' }>): bigint =>
  item.kind === 'event' ? item.event.position : item.position

/** One subscription. Checkpoints keep their place among the events. */
async function* feed(client: Client, { signal, ...wanted }: SubscribeOptions): AsyncGenerator<FeedItem> {
  let confirmed = false
  const silenceMs = (): number => (confirmed ? FEED_SILENCE_MS : CONFIRMATION_SILENCE_MS)
  const call = await client.read(subscribeRequest(wanted))
  const isWanted = wantedBy(wanted)
  for await (const answer of received(call, { silenceMs, signal })) {
    if (answer.kind === 'confirmed') confirmed = true
    else if (answer.kind === 'event' && !isWanted(answer.event))
      yield { kind: 'checkpoint', position: answer.event.position }
    else if (answer.kind !== 'other') yield answer
  }
}

/** Of the events that were asked for by type, those of the categories. */
const wantedBy = ({
  categories,
  excludeTypes: without = [],
}: Omit<SubscribeOptions, 'signal'>): ((event: StoredEvent) => boolean) => {
  if (categories === undefined || without.length === 0) return () => true
  const prefixes = categories.map(name => `${name}-`)
  return ({ stream }) => prefixes.some(prefix => stream.startsWith(prefix))
}
