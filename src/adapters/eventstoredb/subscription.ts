import { setTimeout as sleep } from 'node:timers/promises'
import type { FeedItem, StoredEvent, SubscribeOptions } from '../../ports.ts'
import { answerOf, answerWithBytes } from './answers.ts'
import type { Client } from './client.ts'
import type { Connection } from './connection.ts'
import { ResponseTimeout, isLost, withPosition } from './errors.ts'
import { itemsFrom, type LiveFeed, LiveSubscription, type Place, selected } from './liveSubscription.ts'
import type { FeedPosition } from './liveWindow.ts'
import { subscribeRequest } from './messages.ts'
import { oneByOne, received } from './read.ts'

/** Catch-up subscriptions to $all that resubscribe after every interruption. */

const CONFIRMATION_TIMEOUT_MS = 5000
const IDLE_TIMEOUT_MS = 25_000
const RESUBSCRIBE_MS = 100
const RESUBSCRIBE_MAX_MS = 5000

/**
 * Resubscribes after the last item until the signal aborts, so that the reader sees one endless feed, and yields an
 * item each time that the store does not answer or refuses this service (StoreRefused), since both may be repaired
 * meanwhile. Other errors are thrown, because repeating the request would give them again. A feed that stays is served by
 * the shared live subscription after it has caught up.
 */
export const subscribe = (
  connection: Connection,
  live: LiveSubscription,
  options: SubscribeOptions,
): AsyncIterableIterator<FeedItem> => oneByOne(ownOrShared(connection, live, options))

/** The live log for all feeds of the connection. Checkpoints are left out: it resumes after events alone. */
export const openLiveSubscription = (connection: Connection, closing: AbortSignal): LiveSubscription =>
  new LiveSubscription(stop => {
    const signal = AbortSignal.any([stop, closing])
    return arraysOfItems(connection, { withBytes: true, withoutCheckpoints: true, signal }, reachedAt('end'))
  })

type From = SubscribeOptions['after'] | 'end'
type Wanted = Omit<SubscribeOptions, 'after'> & { readonly withoutCheckpoints?: true }

/** The place that a feed has reached: it resumes after `after`, which may be a checkpoint; `event` is that of an event. */
type Reached = { after: From; event: bigint; isAnnounced: boolean; hasCaughtUp: boolean }

const START_POSITION = -1n

const reachedAt = (after: From): Reached => ({
  after,
  event: typeof after === 'bigint' ? after : START_POSITION,
  isAnnounced: false,
  hasCaughtUp: false,
})

const positionOf = ({ after, event }: Reached): FeedPosition => ({
  event,
  passed: typeof after === 'bigint' ? after : START_POSITION,
})

/** Removes repeated announcements that the feed is live, and advances `reached`. */
const newItems = (items: readonly FeedItem[], reached: Reached): FeedItem[] =>
  items.filter(item => {
    if (item.kind === 'caught_up' && reached.isAnnounced) return false
    reached.isAnnounced = item.kind === 'caught_up' || (reached.isAnnounced && item.kind === 'checkpoint')
    if (item.kind === 'caught_up') reached.hasCaughtUp = true
    if (item.kind === 'interrupted') reached.hasCaughtUp = false
    if (item.kind === 'event') reached.after = reached.event = item.event.position
    if (item.kind === 'checkpoint') reached.after = item.position
    return true
  })

/** The items in arrays, each as it arrived: from a subscription of its own until the feed can join the shared one. */
async function* ownOrShared(
  connection: Connection,
  live: LiveSubscription,
  options: SubscribeOptions,
): AsyncGenerator<readonly FeedItem[]> {
  const { signal } = options
  const selection = { isWanted: wantedBy(options), withBytes: options.withBytes === true }
  const reached = reachedAt(options.after)
  const feed: LiveFeed = { wake: () => undefined }
  const leave = (): void => live.leave(feed)
  signal.addEventListener('abort', leave, { once: true })
  try {
    while (!signal.aborted) {
      let place: Place | undefined
      for await (const items of arraysOfItems(connection, options, reached)) {
        yield items
        if (reached.hasCaughtUp && !signal.aborted) place = live.placeOf(feed, positionOf(reached))
        if (place !== undefined) break
      }
      if (place === undefined) return
      for await (const items of itemsFrom(place, feed, signal)) {
        const own = newItems(selected(items, positionOf(reached), selection), reached)
        if (own.length > 0) yield own
      }
    }
  } finally {
    signal.removeEventListener('abort', leave)
    leave()
  }
}

/** The items of one subscription, in arrays. */
async function* arraysOfItems(
  connection: Connection,
  wanted: Wanted,
  reached: Reached,
): AsyncGenerator<readonly FeedItem[]> {
  const { signal } = wanted
  for (let waitMs = RESUBSCRIBE_MS; !signal.aborted; waitMs = Math.min(waitMs * 2, RESUBSCRIBE_MAX_MS)) {
    const { client } = connection
    try {
      for await (const items of feed(client, wanted, reached.after)) {
        waitMs = RESUBSCRIBE_MS
        yield newItems(items, reached)
      }
    } catch (error) {
      if (signal.aborted) return
      const refused = await connection.refusalIn(error)
      if (refused === undefined && !isInterruption(error)) throw withPosition(error, reached.after)
      if (error instanceof ResponseTimeout && error.limitMs < IDLE_TIMEOUT_MS) connection.renew(client)
      // An idle log is silent too, so that resubscribing is not reported as an interruption.
      if (!isIdleTimeout(error)) {
        reached.isAnnounced = false
        reached.hasCaughtUp = false
        yield [{ kind: 'interrupted', error: refused ?? error }]
      }
    }
    await sleep(waitMs, undefined, { signal }).catch(() => undefined)
  }
}

const isIdleTimeout = (error: unknown): boolean => error instanceof ResponseTimeout && error.limitMs === IDLE_TIMEOUT_MS

const UNKNOWN = 2
const INVALID_ARGUMENT = 3
/** Statuses of refused requests, which the client classifies as a lost connection. */
const REFUSAL_STATUSES: ReadonlySet<unknown> = new Set([UNKNOWN, INVALID_ARGUMENT])

/** The connection was lost, or the store shuts down or hangs. */
const isInterruption = (error: unknown): boolean =>
  isLost(error) && !(error instanceof Error && 'code' in error && REFUSAL_STATUSES.has(error.code))

/** One subscription. Checkpoints are yielded in order among the events. */
async function* feed(client: Client, wanted: Wanted, after: From): AsyncGenerator<readonly FeedItem[]> {
  const { signal, withBytes, withoutCheckpoints, categories, excludeTypes = [] } = wanted
  let confirmed = false
  const timeoutMs = (): number => (confirmed ? IDLE_TIMEOUT_MS : CONFIRMATION_TIMEOUT_MS)
  const call = await client.read(subscribeRequest({ ...wanted, after }), withBytes ? answerWithBytes : answerOf)
  // The store filters by stream or by type, not by both.
  const isWanted = categories !== undefined && excludeTypes.length > 0 ? wantedBy(wanted) : () => true
  for await (const answers of received(call, { timeoutMs, signal })) {
    const items: FeedItem[] = []
    for (const answer of answers) {
      if (answer.kind === 'confirmed') confirmed = true
      else if (answer.kind === 'event' && !isWanted(answer.event))
        items.push({ kind: 'checkpoint', position: answer.event.position })
      else if (answer.kind !== 'other' && !(withoutCheckpoints && answer.kind === 'checkpoint')) items.push(answer)
    }
    if (items.length > 0) yield items
  }
}

/** Selects events as the store does by the filters of messages.ts; those of the store itself are not asked for. */
const wantedBy = ({
  categories,
  excludeTypes = [],
}: Pick<SubscribeOptions, 'categories' | 'excludeTypes'>): ((event: StoredEvent) => boolean) => {
  const prefixes = categories?.map(name => `${name}-`)
  const excluded = new Set(excludeTypes)
  const isTypeWanted = (type: string): boolean => excluded.size === 0 || !(excluded.has(type) || type.startsWith('$'))
  return ({ stream, type }) =>
    isTypeWanted(type) && (prefixes === undefined || prefixes.some(prefix => stream.startsWith(prefix)))
}
