import { LRUCache } from 'lru-cache'
import { fold } from '../../projections/projection.ts'
import { streamOf } from '../../streams/aggregate.ts'
import type { Recorded } from '../../streams/envelope.ts'
import type { Id, IdPrefix } from '../../streams/ids.ts'
import { PersistentMap, PersistentSet } from '../../streams/persistentMap.ts'
import type { EventStore, ExpectedRevision, ReadOptions } from '../ports.ts'
import type { Entity, Kind } from './entities.ts'
import { recordedOf } from '../lib/storedEvents.ts'

/** A folded stream: the state for decisions, the row for readers. */
export type Loaded<K extends Kind> = {
  readonly state: K['state']
  readonly row: K['row'] | undefined
  readonly revision: ExpectedRevision
  /** The position of the newest event; zero when there is none. */
  readonly position: bigint
}

/**
 * In bytes by `heapBytesOf`, because streams differ by thousands: about 50,000 payments, or 500 of the largest orders.
 */
const CACHED_BYTES_MAX = 128 * 1024 * 1024

/** Loads aggregates from their streams and caches the folded state: an unchanged stream costs one empty read. */
export type AggregateRepository = {
  /** The current state, read from the store. */
  load<K extends Kind>(entity: Entity<K>, id: Id<IdPrefix>): Promise<Loaded<K>>
  /** The state that this process saw last, without a read. It may be stale; an append at its revision detects that. */
  cached<K extends Kind>(entity: Entity<K>, id: Id<IdPrefix>): Loaded<K> | undefined
  /** Updates the cache with events that this process has just appended. */
  advance<K extends Kind>(entity: Entity<K>, from: Loaded<K>, events: readonly Recorded<K['event']>[]): Loaded<K>
  /**
   * The state if the stream is the tenant's. A missing one and another tenant's cost the same read, so timing tells
   * nothing.
   */
  loadOwn<K extends Kind>(entity: Entity<K>, id: Id<IdPrefix>, tenant: string): Promise<Loaded<K> | undefined>
  first<K extends Kind>(entity: Entity<K>, id: Id<IdPrefix>): Promise<Recorded<K['event']> | undefined>
  newest<K extends Kind>(entity: Entity<K>, id: Id<IdPrefix>): Promise<Recorded<K['event']> | undefined>
  /** Events of the stream, each decoded when it is requested; a reader that leaves early ends the read. */
  events<K extends Kind>(
    entity: Entity<K>,
    id: Id<IdPrefix>,
    range?: Pick<ReadOptions, 'from' | 'limit' | 'direction'>,
  ): AsyncIterable<Recorded<K['event']>>
}

const foldOne = <K extends Kind>(
  { aggregate, projection }: Entity<K>,
  loaded: Loaded<K>,
  recorded: Recorded<K['event']>,
): Loaded<K> => ({
  state: aggregate.decider.evolve(loaded.state, recorded.event),
  row: projection && fold(projection, loaded.row, recorded),
  revision: recorded.revision,
  position: recorded.position,
})

export const nothingLoaded = <K extends Kind>(entity: Entity<K>): Loaded<K> => ({
  state: entity.aggregate.decider.initial,
  row: undefined,
  revision: 'no_stream',
  position: 0n,
})

const onlyOne = async <T>(items: AsyncIterable<T>): Promise<T | undefined> => {
  for await (const item of items) return item
  return undefined
}

type Cache = LRUCache<string, Loaded<Kind>>

const remember = (cache: Cache, stream: string, loaded: Loaded<Kind>): void => {
  const previous = cache.peek(stream)
  // Two requests may finish in the other order than they began; the newer state stays.
  if (
    previous &&
    previous.revision !== 'no_stream' &&
    loaded.revision !== 'no_stream' &&
    previous.revision > loaded.revision
  )
    return
  cache.set(stream, loaded)
}

/** Long because the functions share the cache. A stream that alone exceeds the budget is not cached, so each load reads it from its first event. */
export const createAggregateRepository = (
  store: EventStore,
  cachedBytesMax = CACHED_BYTES_MAX,
): AggregateRepository => {
  const cache: Cache = new LRUCache({
    maxSize: cachedBytesMax,
    sizeCalculation: (loaded, stream) => heapBytesOf(stream) + heapBytesOf(loaded),
  })

  const aggregates: AggregateRepository = {
    cached: (entity, id) => cache.get(streamOf(entity.aggregate, id)) as ReturnType<typeof aggregates.cached<never>>,
    load: async (entity, id) => {
      const stream = streamOf(entity.aggregate, id)
      const start = aggregates.cached(entity, id) ?? nothingLoaded(entity)
      const from = start.revision === 'no_stream' ? 0n : start.revision + 1n
      let loaded = start
      for await (const stored of store.readStream(stream, { from }))
        loaded = foldOne(entity, loaded, recordedOf(entity.aggregate.codec, stored))
      if (loaded !== start) remember(cache, stream, loaded)
      return loaded
    },
    advance: (entity, from, events) => {
      const loaded = events.reduce((before, recorded) => foldOne(entity, before, recorded), from)
      const [first] = events
      if (first) remember(cache, streamOf(entity.aggregate, first.id as Id<IdPrefix>), loaded)
      return loaded
    },
    loadOwn: async (entity, id, tenant) => {
      const isOwn =
        aggregates.cached(entity, id)?.row?.tenant_id === tenant ||
        (await aggregates.first(entity, id))?.metadata.tenant === tenant
      return isOwn ? aggregates.load(entity, id) : undefined
    },
    first: (entity, id) => onlyOne(aggregates.events(entity, id, { limit: 1 })),
    newest: (entity, id) => onlyOne(aggregates.events(entity, id, { direction: 'backwards', limit: 1 })),
    async *events(entity, id, range = {}) {
      for await (const stored of store.readStream(streamOf(entity.aggregate, id), range))
        yield recordedOf(entity.aggregate.codec, stored)
    },
  }
  return aggregates
}

const OBJECT_BYTES = 24
const MEMBER_BYTES = 32
const TEXT_BYTES = 24
/** V8 uses two bytes per character for a string that has any character outside Latin-1. */
const CHARACTER_BYTES = 2
const NUMBER_BYTES = 8
/** A node of the trie, its share of the branches above, and the id or small record in it. */
const ENTRY_BYTES = 256

const textBytes = (text: string): number => TEXT_BYTES + CHARACTER_BYTES * text.length

/**
 * Estimates the heap bytes of plain data and persistent collections (by their size), rather too high: shared parts
 * count twice.
 */
export const heapBytesOf = (value: unknown): number => {
  if (typeof value === 'string') return textBytes(value)
  if (typeof value !== 'object' || value === null) return NUMBER_BYTES
  if (value instanceof PersistentMap || value instanceof PersistentSet) return OBJECT_BYTES + ENTRY_BYTES * value.size
  let bytes = OBJECT_BYTES
  if (Array.isArray(value)) for (const item of value) bytes += MEMBER_BYTES + heapBytesOf(item)
  else for (const inner of Object.values(value)) bytes += MEMBER_BYTES + heapBytesOf(inner)
  return bytes
}
