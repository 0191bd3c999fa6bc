import { SECOND_MS } from '../lib/time.ts'
import { books, journals, projections } from '../../projections/index.ts'
import { partsOf } from '../../streams/aggregate.ts'
import type { EventStore, Sql, StoredEvent, SubscribeOptions } from '../ports.ts'
import { checkpointPositions } from './checkpoints.ts'

/** How far feeds and read models are behind the log: in events, and in seconds since the oldest event that they lack. */

/** At most so many events are read in one reading to count them. */
export const LAG_EVENTS_MAX = 1_000

/** A feed by its checkpoint. */
export type Followed = Pick<SubscribeOptions, 'categories' | 'excludeTypes'> & {
  readonly name: string
  /** Undefined for a feed that has never run, negative before its first event. */
  readonly position: bigint | undefined
}

/** The read models by their checkpoints, with the folders by which operators know them. */
export const FOLLOWED_READ_MODELS: readonly (Omit<Followed, 'position'> & { readonly projection: string })[] = [
  ...Object.entries(projections).map(([projection, { name, category }]) => ({
    projection,
    name,
    categories: [category],
  })),
  ...Object.entries({ ...journals, books }).map(([projection, { name, categories }]) => ({
    projection,
    name,
    categories,
  })),
]

/**
 * LAG_EVENTS_MAX events: at least so many. A feed that reads none of so many after its checkpoint lags by all of them,
 * because it may read those beyond.
 */
export type Lag = { readonly events: number; readonly seconds: number }

const NO_LAG: Lag = { events: 0, seconds: 0 }
const positionOf = ({ position }: Followed): bigint => position ?? -1n

type Counted = {
  events: number
  oldestMs: number | undefined
  /** The events after the checkpoint, whether the feed reads them or not. */
  passed: number
  oldestPassedMs: number | undefined
  /** Whether there are events beyond those that were read. */
  isCut: boolean
}
const noneCounted = (): Counted => ({
  events: 0,
  oldestMs: undefined,
  passed: 0,
  oldestPassedMs: undefined,
  isCut: false,
})
type Counts = Map<string, Counted>

/** Reads from the earliest checkpoint. Resolves to the feeds of later checkpoints that need a reading of their own. */
const readOnce = async (store: Pick<EventStore, 'subscribe'>, lagging: readonly Followed[], counts: Counts) => {
  const [first = -1n] = lagging.map(positionOf).toSorted((a, b) => (a < b ? -1 : 1))
  const stop = new AbortController()
  let read = 0
  try {
    for await (const item of store.subscribe({ after: first < 0n ? 'start' : first, signal: stop.signal })) {
      if (item.kind === 'interrupted') throw item.error
      if (item.kind === 'caught_up') return []
      if (item.kind !== 'event') continue
      if (read === LAG_EVENTS_MAX) break
      read += 1
      count(counts, lagging, item.event)
    }
  } finally {
    stop.abort()
  }
  for (const { name } of lagging) (counts.get(name) ?? noneCounted()).isCut = true
  return lagging.filter(feed => positionOf(feed) > first && counts.get(feed.name)?.events === 0)
}

/**
 * Feeds with near checkpoints are counted in one reading of the log. A clock behind that of the store gives zero
 * seconds. Throws Unavailable, and the error of the store for a position that it refuses.
 */
export const lagsOf = async (
  store: Pick<EventStore, 'subscribe' | 'head'>,
  feeds: readonly Followed[],
  nowMs: number,
): Promise<ReadonlyMap<string, Lag>> => {
  const head = await store.head()
  const counts: Counts = new Map()
  let lagging: readonly Followed[] = feeds.filter(feed => positionOf(feed) < head)
  while (lagging.length > 0) {
    for (const { name } of lagging) counts.set(name, noneCounted())
    lagging = await readOnce(store, lagging, counts)
  }
  return new Map(feeds.map(({ name }) => [name, lagFrom(counts.get(name), nowMs)]))
}

export const lagsOfReadModels = async (
  sql: Sql,
  store: Pick<EventStore, 'subscribe' | 'head'>,
  nowMs: number,
): Promise<ReadonlyMap<string, Lag>> => {
  const positions = await checkpointPositions(sql)
  const followed = FOLLOWED_READ_MODELS.map(of => ({ ...of, position: positions.get(of.name) }))
  return lagsOf(store, followed, nowMs)
}

const count = (
  counts: Counts,
  feeds: readonly Followed[],
  event: Pick<StoredEvent, 'stream' | 'type' | 'position' | 'storedAt'>,
): void => {
  const { category } = partsOf(event.stream)
  const storedAtMs = Date.parse(event.storedAt)
  for (const feed of feeds) {
    const counted = counts.get(feed.name)
    if (counted === undefined || event.position <= positionOf(feed)) continue
    counted.passed += 1
    counted.oldestPassedMs ??= storedAtMs
    if (feed.categories?.includes(category) === false || feed.excludeTypes?.includes(event.type)) continue
    counted.events += 1
    counted.oldestMs ??= storedAtMs
  }
}

const lagFrom = (counted: Counted | undefined, nowMs: number): Lag => {
  if (counted === undefined) return NO_LAG
  const { events, oldestMs } =
    counted.events === 0 && counted.isCut ? { events: counted.passed, oldestMs: counted.oldestPassedMs } : counted
  if (oldestMs === undefined) return NO_LAG
  return { events, seconds: Math.max(0, Math.round((nowMs - oldestMs) / SECOND_MS)) }
}
