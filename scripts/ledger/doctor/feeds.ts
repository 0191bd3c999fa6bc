import { setTimeout as sleep } from 'node:timers/promises'
import { journals, projections } from '../../../projections/index.ts'
import type { Database, EventStore } from '../../../src/ports.ts'
import { aggregates } from '../../../streams/index.ts'
import { type Check, finding, notUsed, ok, reasonOf } from './finding.ts'

/** How far each subscriber of the log has got, counted in the events that it still has to take. */

export type FeedReport = {
  readonly name: string
  /** Null when it has never run, -1 when it has run and taken nothing yet. */
  readonly position: bigint | null
  /** Events of its categories behind that position, up to the head; at most EVENTS_COUNTED_MAX are counted. */
  readonly behind: number
  /** Why they cannot be counted: the store refuses a reader that goes on from there, say. */
  readonly error?: string
}

export const EVENTS_COUNTED_MAX = 1_000
/** A feed has this long to reach what was the head when the doctor came. Longer than a process waits before it acts. */
const GRACE_MS = 5_000
const POLL_MS = 250
/**
 * A server with a filter tells a subscriber only now and then how far it has searched in vain: so many events of other
 * categories may lie between where it says that it is and where it really is. The embedded store tells at once.
 */
const UNTOLD_EVENTS_MAX = 128

const EVERYTHING: readonly string[] = Object.keys(aggregates)

/** The read models follow what their declaration says; what a process or the publisher follows is its own affair. */
const DECLARED: ReadonlyMap<string, readonly string[]> = new Map([
  ...Object.values(projections).map(({ name, category }) => [name, [category]] as const),
  ...Object.values(journals).map(({ name, categories }) => [name, categories] as const),
])
export const PROCESSES: readonly string[] = ['settlement', 'fulfilment']
const PUBLISHER = 'publisher'

/** The table of another build: of an older one, or of a newer one that stands beside. */
const isForeign = (name: string): boolean => /_v\d+$/.test(name) && !DECLARED.has(name)

type Checkpoints = ReadonlyMap<string, bigint>

/** The table is made by the first service that starts; before that no feed has run. */
const checkpointsIn = async ({ sql }: Database): Promise<Checkpoints> => {
  const [found] = await sql<{ there: boolean }>(`select to_regclass('checkpoints') is not null as there`)
  if (found?.there !== true) return new Map()
  const rows = await sql<{ name: string; position: bigint }>('select name, position from checkpoints order by name')
  return new Map(rows.map(({ name, position }) => [name, position]))
}

/** Those that must be, and after them those that are all the same. */
const namesOf = (found: Checkpoints, hasKafka: boolean): readonly string[] => [
  ...new Set([...DECLARED.keys(), ...PROCESSES, ...(hasKafka ? [PUBLISHER] : []), ...found.keys()]),
]

type Wanted = { readonly after: bigint | undefined; readonly categories: readonly string[]; readonly head: bigint }

/** Counted and not subtracted: between the positions of one category lie those of all the others. */
const countBehind = async (store: EventStore, { after, categories, head }: Wanted): Promise<number> => {
  if (after !== undefined && after >= head) return 0
  const stop = new AbortController()
  const start = after === undefined || after < 0n ? 'start' : after
  let count = 0
  try {
    for await (const item of store.subscribe({ after: start, categories, signal: stop.signal })) {
      if (item.kind === 'interrupted') throw item.error
      if (item.kind === 'caught_up') break
      if (item.kind === 'event' && item.event.position > head) break
      if (item.kind === 'event') count += 1
      if (count === EVENTS_COUNTED_MAX) break
    }
    return count
  } finally {
    stop.abort()
  }
}

export type FeedExamination = {
  readonly store: EventStore
  readonly database: Database
  readonly hasKafka: boolean
  /** Whether the store is the embedded one, which leaves no subscriber in the dark about where it is. */
  readonly isEmbedded: boolean
}

const look = async ({ store, database, hasKafka }: FeedExamination, head: bigint): Promise<readonly FeedReport[]> => {
  const found = await checkpointsIn(database)
  const reportOf = async (name: string): Promise<FeedReport> => {
    const after = found.get(name)
    const categories = DECLARED.get(name) ?? EVERYTHING
    const position = after ?? null
    try {
      return { name, position, behind: isForeign(name) ? 0 : await countBehind(store, { after, categories, head }) }
    } catch (error) {
      return { name, position, behind: 0, error: reasonOf(error) }
    }
  }
  return await Promise.all(namesOf(found, hasKafka).map(reportOf))
}

const toleratedOf = (name: string, { isEmbedded }: FeedExamination): number =>
  isEmbedded || DECLARED.has(name) ? 0 : UNTOLD_EVENTS_MAX

const isBehind = ({ name, position, behind, error }: FeedReport, parts: FeedExamination): boolean =>
  position === null || error !== undefined || behind > toleratedOf(name, parts)

const checkOf = (feed: FeedReport, parts: FeedExamination): Check => {
  const { name, position, behind, error } = feed
  const check = `feed ${name}`
  const wayOut =
    'A service with the role of this feed must run; if one does, its log and the errors of feeds below have the reason.'
  if (isForeign(name)) return notUsed(check, `at position ${position}, of another build`)
  if (position === null) return finding(check, 'It has never run here.', wayOut)
  if (error !== undefined)
    return finding(check, `The store does not let a reader go on from ${position}: ${error}`, wayOut)
  if (!isBehind(feed, parts))
    return ok(check, position < 0n ? 'at the start of an empty log' : `at position ${position}, not behind`)
  const events = behind === EVENTS_COUNTED_MAX ? `${behind} events or more` : `${behind} events`
  return finding(check, `${events} behind, at position ${position}, and not there in ${GRACE_MS / 1_000} s.`, wayOut)
}

/** Every feed that there should be, or is. One that is on its way gets a moment to arrive at `head`. */
export const examineFeeds = async (
  parts: FeedExamination,
  head: bigint,
): Promise<{ feeds: readonly FeedReport[]; checks: readonly Check[] }> => {
  const givenUpAtMs = performance.now() + GRACE_MS
  let feeds = await look(parts, head)
  while (feeds.some(feed => isBehind(feed, parts)) && performance.now() < givenUpAtMs) {
    await sleep(POLL_MS)
    feeds = await look(parts, head)
  }
  return { feeds, checks: feeds.map(feed => checkOf(feed, parts)) }
}
