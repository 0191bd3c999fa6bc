import { setTimeout as sleep } from 'node:timers/promises'
import type { FeedItem, StoredEvent, SubscribeOptions } from '../../ports.ts'
import { answerOf, answerWithBytes } from './answers.ts'
import type { Client } from './client.ts'
import type { Connection } from './connection.ts'
import { ResponseTimeout, isLost, withPosition } from './errors.ts'
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
 * meanwhile. Other errors are thrown, because repeating the request would give them again.
 */
export const subscribe = (connection: Connection, options: SubscribeOptions): AsyncIterableIterator<FeedItem> =>
  oneByOne(arraysOfItems(connection, options))

/** The place that a subscription has reached. */
type Reached = { after: SubscribeOptions['after']; live: boolean }

/** Removes repeated announcements that the feed is live, and advances `reached`. */
const newItems = (items: readonly FeedItem[], reached: Reached): FeedItem[] =>
  items.filter(item => {
    if (item.kind === 'caught_up' && reached.live) return false
    reached.live = item.kind === 'caught_up' || (reached.live && item.kind === 'checkpoint')
    if (item.kind === 'event') reached.after = item.event.position
    if (item.kind === 'checkpoint') reached.after = item.position
    return true
  })

/** The items in arrays, each as it arrived. */
async function* arraysOfItems(connection: Connection, options: SubscribeOptions): AsyncGenerator<readonly FeedItem[]> {
  const { signal } = options
  const reached: Reached = { after: options.after, live: false }
  for (let waitMs = RESUBSCRIBE_MS; !signal.aborted; waitMs = Math.min(waitMs * 2, RESUBSCRIBE_MAX_MS)) {
    const { client } = connection
    try {
      for await (const items of feed(client, { ...options, after: reached.after })) {
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
        reached.live = false
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
async function* feed(client: Client, { signal, ...wanted }: SubscribeOptions): AsyncGenerator<readonly FeedItem[]> {
  let confirmed = false
  const timeoutMs = (): number => (confirmed ? IDLE_TIMEOUT_MS : CONFIRMATION_TIMEOUT_MS)
  const call = await client.read(subscribeRequest(wanted), wanted.withBytes ? answerWithBytes : answerOf)
  const isWanted = wantedBy(wanted)
  for await (const answers of received(call, { timeoutMs, signal })) {
    const items: FeedItem[] = []
    for (const answer of answers) {
      if (answer.kind === 'confirmed') confirmed = true
      else if (answer.kind === 'event' && !isWanted(answer.event))
        items.push({ kind: 'checkpoint', position: answer.event.position })
      else if (answer.kind !== 'other') items.push(answer)
    }
    if (items.length > 0) yield items
  }
}

/** Selects the categories among events that were requested by type. */
const wantedBy = ({
  categories,
  excludeTypes = [],
}: Omit<SubscribeOptions, 'signal'>): ((event: StoredEvent) => boolean) => {
  if (categories === undefined || excludeTypes.length === 0) return () => true
  const prefixes = categories.map(name => `${name}-`)
  return ({ stream }) => prefixes.some(prefix => stream.startsWith(prefix))
}
