import type { FeedItem, StoredEvent, SubscribeOptions } from '../../ports.ts'
import { answerOf, answerWithBytes } from './answers.ts'
import type { Client } from './client.ts'
import type { Connection } from './connection.ts'
import { ResponseTimeout, causeOf, isLost, isNotLeader, withPosition } from './errors.ts'
import { itemsFrom, type LiveFeed, LiveSubscription, type Place, selected } from './liveSubscription.ts'
import { subscribeRequest } from './messages.ts'
import { begin, newestEvent, oneByOne, received } from './read.ts'
import { backoffMs, sleep } from '../../lib/time.ts'

const CONFIRMATION_TIMEOUT_MS = 5000
const IDLE_TIMEOUT_MS = 25_000
const RESUBSCRIBE_MS = 100
const RESUBSCRIBE_MAX_MS = 5000

/**
 * Resubscribes after the last item until the signal aborts, so the reader sees one endless feed, and yields an
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
type Filter = Omit<SubscribeOptions, 'after'> & { readonly withoutCheckpoints?: true }

/** The place that a feed has reached, and resumes after. */
type Reached = { after: From; isAnnounced: boolean; hasCaughtUp: boolean }

const START_POSITION = -1n

const reachedAt = (after: From): Reached => ({ after, isAnnounced: false, hasCaughtUp: false })

const positionIn = (after: From): bigint => (typeof after === 'bigint' ? after : START_POSITION)

/** Removes repeated announcements that the feed is live, and advances `reached`. */
const newItems = (items: readonly FeedItem[], reached: Reached): FeedItem[] =>
  items.filter(item => {
    if (item.kind === 'caught_up' && reached.isAnnounced) return false
    reached.isAnnounced = item.kind === 'caught_up' || (reached.isAnnounced && item.kind === 'checkpoint')
    if (item.kind === 'caught_up') reached.hasCaughtUp = true
    if (item.kind === 'interrupted') reached.hasCaughtUp = false
    if (item.kind === 'event') reached.after = item.event.position
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
  const selection = { isWanted: predicateOf(options), withBytes: options.withBytes === true }
  const reached = reachedAt(options.after)
  const feed: LiveFeed = { wake: () => undefined }
  const leave = (): void => live.leave(feed)
  signal.addEventListener('abort', leave, { once: true })
  try {
    while (!signal.aborted) {
      let place: Place | undefined
      for await (const items of arraysOfItems(connection, options, reached)) {
        yield items
        if (reached.hasCaughtUp && !signal.aborted) place = live.placeOf(feed, positionIn(reached.after))
        if (place !== undefined) break
      }
      if (place === undefined) return
      for await (const items of itemsFrom(place, feed, signal)) {
        const own = newItems(selected(items, positionIn(reached.after), selection), reached)
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
  filter: Filter,
  reached: Reached,
): AsyncGenerator<readonly FeedItem[]> {
  const { signal } = filter
  for (let failures = 0; !signal.aborted; failures += 1) {
    const { client } = connection
    let hasBegun = false
    try {
      for await (const items of feed(client, filter, reached.after)) {
        hasBegun = true
        failures = 0
        yield newItems(items, reached)
      }
    } catch (error) {
      if (signal.aborted) return
      const refused = await connection.refusalIn(error)
      if (refused === undefined && !isInterruption(error)) throw withPosition(error, reached.after)
      if (isTooLate(error)) connection.renew(client)
      if (isNotLeader(error)) await client.followLeader()
      if (!(hasBegun && isEndOfOne(error))) {
        reached.isAnnounced = false
        reached.hasCaughtUp = false
        yield [{ kind: 'interrupted', error: refused ?? error }]
      }
    }
    await sleep(backoffMs(failures, RESUBSCRIBE_MS, RESUBSCRIBE_MAX_MS), signal)
  }
}

const isIdleTimeout = (error: unknown): boolean => error instanceof ResponseTimeout && error.limitMs === IDLE_TIMEOUT_MS
const isTooLate = (error: unknown): boolean => error instanceof ResponseTimeout && !isIdleTimeout(error)

/**
 * One subscription has ended, and the next one continues it, so this is not reported as an interruption: an idle log
 * is silent too; a store that stalls may take the reader of a live subscription for too slow (ABORTED); and a node may
 * have become a follower.
 */
const isEndOfOne = (error: unknown): boolean =>
  isIdleTimeout(error) || causeOf(error)?.type === 'timeout' || isNotLeader(error)

const INVALID_ARGUMENT = 3

/** The connection was lost, or the store shuts down or hangs. The client takes a refused request for a lost connection. */
const isInterruption = (error: unknown): boolean =>
  isLost(error) && !(error instanceof Error && 'code' in error && error.code === INVALID_ARGUMENT)

/** One subscription. The first array comes with its confirmation, and may be empty. */
async function* feed(client: Client, filter: Filter, after: From): AsyncGenerator<readonly FeedItem[]> {
  const { signal, withBytes, withoutCheckpoints } = filter
  let confirmed = false
  const timeoutMs = (): number => (confirmed ? IDLE_TIMEOUT_MS : CONFIRMATION_TIMEOUT_MS)
  const call = await begin(client, {
    request: subscribeRequest({ ...filter, after }),
    decode: withBytes ? answerWithBytes : answerOf,
    timeoutMs: CONFIRMATION_TIMEOUT_MS,
  })
  const isWanted = predicateOf(filter)
  const passed = new PassedCheckpoints(positionIn(after))
  for await (const answers of received(call, { timeoutMs, signal })) {
    const items: FeedItem[] = []
    const addCheckpoint = (position: bigint | undefined): void => {
      if (position !== undefined && !withoutCheckpoints) items.push({ kind: 'checkpoint', position })
    }
    for (const answer of answers) {
      if (answer.kind === 'confirmed') confirmed = true
      if (answer.kind === 'checkpoint') addCheckpoint(passed.checkpoint(answer.position))
      if (answer.kind === 'event') {
        passed.event(answer.event.position)
        // The store filters by stream or by type, not by both.
        if (isWanted(answer.event)) items.push(answer)
        else addCheckpoint(answer.event.position)
      }
      if (answer.kind === 'caught_up') {
        // Read from the leader: the end of a follower is not that of the log.
        const newest = await newestEvent(client, signal)
        addCheckpoint(passed.caughtUp(newest, isWanted))
        items.push(answer)
      }
    }
    yield items
  }
}

/**
 * The checkpoints of a filtered subscription that are positions of events which it has passed, so a feed can resume
 * after them. The store's own checkpoint at the end of the log can be the position that the next event will get (KurrentDB
 * issue 4970), and who resumes there misses that event.
 */
class PassedCheckpoints {
  /** The position of the last event or checkpoint. */
  private last: bigint
  /** The last checkpoint, until the next answer. */
  private announced: bigint | undefined

  constructor(after: bigint) {
    this.last = after
  }

  event(position: bigint): void {
    this.last = position
    this.announced = undefined
  }

  /** The checkpoint before this one, which this one shows to have been passed. */
  checkpoint(position: bigint): bigint | undefined {
    const { announced } = this
    // Some versions announce an earlier position while a subscription is live.
    if (position <= this.last) return undefined
    this.last = this.announced = position
    return announced
  }

  /** The position of the newest event if the subscription has passed it. A wanted one comes as an event. */
  caughtUp(newest: StoredEvent | undefined, isWanted: (event: StoredEvent) => boolean): bigint | undefined {
    const { announced } = this
    this.announced = undefined
    const isPassed = newest !== undefined && announced !== undefined && newest.position <= announced
    return isPassed && !isWanted(newest) ? newest.position : undefined
  }
}

/** Selects events as the store does by the filters of messages.ts. */
const predicateOf = ({
  categories,
  excludeTypes = [],
}: Pick<SubscribeOptions, 'categories' | 'excludeTypes'>): ((event: StoredEvent) => boolean) => {
  const prefixes = categories?.map(name => `${name}-`)
  const excluded = new Set(excludeTypes)
  const isTypeWanted = (type: string): boolean => excluded.size === 0 || !(excluded.has(type) || type.startsWith('$'))
  const isStreamWanted = (stream: string): boolean =>
    prefixes === undefined ? !stream.startsWith('$') : prefixes.some(prefix => stream.startsWith(prefix))
  return ({ stream, type }) => isTypeWanted(type) && isStreamWanted(stream)
}
