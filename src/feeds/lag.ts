import { books, journals, projections } from '../../projections/index.ts'
import { partsOf } from '../../streams/aggregate.ts'
import type { EventStore, Sql, StoredEvent } from '../ports.ts'
import { checkpointPositions } from './checkpoints.ts'

/** How far feeds and read models are behind the log: in events, and in seconds since the oldest event that they lack. */

/** At most so many events are read to count them. */
export const LAG_EVENTS_MAX = 1_000

/** A feed by its checkpoint. */
export type Followed = {
  readonly name: string
  /** Undefined for a feed that has never run, negative before its first event. */
  readonly position: bigint | undefined
  /** The categories that it reads; all when absent. */
  readonly categories?: readonly string[]
  /** Types of events that it ignores. */
  readonly excludeTypes?: readonly string[]
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

/** `events` is at least the lag when it is LAG_EVENTS_MAX. `seconds` is zero for a feed that lacks nothing. */
export type Lag = { readonly events: number; readonly seconds: number }

const MS_PER_SECOND = 1_000

const positionOf = ({ position }: Followed): bigint => position ?? -1n

type Counted = { events: number; oldestMs: number | undefined }

/**
 * The lag of each feed, from one reading of the log after the earliest checkpoint. `nowMs`: milliseconds since the epoch; a clock
 * that is behind that of the store gives zero seconds. Throws Unavailable, and the error of the store for a position that it
 * refuses.
 */
export const lagsOf = async (
  store: Pick<EventStore, 'subscribe' | 'head'>,
  feeds: readonly Followed[],
  nowMs: number,
): Promise<ReadonlyMap<string, Lag>> => {
  const head = await store.head()
  const lagging = feeds.filter(feed => positionOf(feed) < head)
  const counts = new Map<string, Counted>(lagging.map(({ name }) => [name, { events: 0, oldestMs: undefined }]))
  const first = lagging.reduce((least, feed) => (positionOf(feed) < least ? positionOf(feed) : least), head)
  const stop = new AbortController()
  let read = 0
  try {
    if (lagging.length > 0)
      for await (const item of store.subscribe({ after: first < 0n ? 'start' : first, signal: stop.signal })) {
        if (item.kind === 'interrupted') throw item.error
        if (item.kind === 'caught_up' || read === LAG_EVENTS_MAX) break
        if (item.kind !== 'event') continue
        read += 1
        count(counts, lagging, item.event)
      }
  } finally {
    stop.abort()
  }
  return new Map(feeds.map(({ name }) => [name, lagFrom(counts.get(name), nowMs)]))
}

/** The lags of all read models, by their checkpoints. */
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
  counts: ReadonlyMap<string, Counted>,
  feeds: readonly Followed[],
  event: Pick<StoredEvent, 'stream' | 'type' | 'position' | 'storedAt'>,
): void => {
  const { category } = partsOf(event.stream)
  for (const feed of feeds) {
    const counted = counts.get(feed.name)
    const isRead = (feed.categories?.includes(category) ?? true) && !feed.excludeTypes?.includes(event.type)
    if (counted === undefined || !isRead || event.position <= positionOf(feed)) continue
    counted.events += 1
    counted.oldestMs ??= Date.parse(event.storedAt)
  }
}

const lagFrom = (counted: Counted | undefined, nowMs: number): Lag => {
  if (counted?.oldestMs === undefined) return { events: 0, seconds: 0 }
  return { events: counted.events, seconds: Math.max(0, Math.round((nowMs - counted.oldestMs) / MS_PER_SECOND)) }
}
