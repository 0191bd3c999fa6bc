import { setTimeout as sleep } from 'node:timers/promises'
import { books, journals, projections } from '../../../projections/index.ts'
import type { Database, EventStore } from '../../../src/ports.ts'
import { relationExists } from '../../../src/schema/existingRelations.ts'
import { aggregates } from '../../../streams/index.ts'
import { reasonOf } from '../../../src/lib/connectionFailures.ts'
import { type Check, finding, notUsed, ok } from './finding.ts'

export type FeedReport = {
  readonly name: string
  /** Null if the feed has never run, -1 if it has run without processing an event. */
  readonly position: bigint | null
  /** Events of its categories after that position, up to the head; counted up to EVENTS_COUNTED_MAX. */
  readonly behind: number
  /** The age of the first of these events; zero if there is none. */
  readonly seconds: number
  /** The reason if they cannot be counted, such as a position that the store rejects. */
  readonly error?: string
}

const EVENTS_COUNTED_MAX = 1_000
/** The time in which a feed must reach the head as it was at the start of the check. */
const GRACE_MS = 5_000
const POLL_MS = 250
/** EventStoreDB reports the position of a filtered subscription only at intervals of so many events. */
const UNREPORTED_EVENTS_MAX = 128

const EVERYTHING: readonly string[] = Object.keys(aggregates)

/** Categories of the read models, by their declaration. For any other feed the events of all categories are counted. */
const CATEGORIES: ReadonlyMap<string, readonly string[]> = new Map([
  ...Object.values(projections).map(({ name, category }) => [name, [category]] as const),
  ...[...Object.values(journals), books].map(({ name, categories }) => [name, categories] as const),
])
/** Process managers by the names of their checkpoints: `settlement` is payment recovery. */
export const PROCESSES: readonly string[] = ['settlement', 'fulfilment']
const PUBLISHER = 'publisher'

/** A table of an older build, or of a newer one beside this build. */
const isOfAnotherBuild = (name: string): boolean => /_v\d+$/.test(name) && !CATEGORIES.has(name)

type Checkpoints = ReadonlyMap<string, bigint>

/** None before the first service has created the table. */
const checkpointsIn = async ({ sql }: Database): Promise<Checkpoints> => {
  if (!(await relationExists(sql, 'checkpoints'))) return new Map()
  const rows = await sql<{ name: string; position: bigint }>('select name, position from checkpoints order by name')
  return new Map(rows.map(({ name, position }) => [name, position]))
}

/** The expected feeds, then any others with a checkpoint. */
const namesOf = (checkpoints: Checkpoints, hasKafka: boolean): readonly string[] => [
  ...new Set([...CATEGORIES.keys(), ...PROCESSES, ...(hasKafka ? [PUBLISHER] : []), ...checkpoints.keys()]),
]

type Behind = Pick<FeedReport, 'behind' | 'seconds'>
const NOT_BEHIND: Behind = { behind: 0, seconds: 0 }

/** In seconds; zero where the clock of the store is ahead. */
const ageOf = (time: string): number => Math.max(0, Math.round((Date.now() - Date.parse(time)) / 1_000))

type Backlog = { readonly after: bigint | undefined; readonly categories: readonly string[]; readonly head: bigint }

/** The events after the checkpoint. Positions cannot be subtracted: they are byte offsets of all categories. */
const countBehind = async (store: EventStore, { after, categories, head }: Backlog): Promise<Behind> => {
  if (after !== undefined && after >= head) return NOT_BEHIND
  const stop = new AbortController()
  const start = after === undefined || after < 0n ? 'start' : after
  let count = 0
  let seconds = 0
  try {
    for await (const item of store.subscribe({ after: start, categories, signal: stop.signal })) {
      if (item.kind === 'interrupted') throw item.error
      if (item.kind === 'caught_up') break
      if (item.kind === 'event' && item.event.position > head) break
      if (item.kind === 'event' && count === 0) seconds = ageOf(item.event.storedAt)
      if (item.kind === 'event') count += 1
      if (count === EVENTS_COUNTED_MAX) break
    }
    return { behind: count, seconds }
  } finally {
    stop.abort()
  }
}

export type FeedExamination = {
  readonly store: EventStore
  readonly database: Database
  /** The position of the newest event. */
  readonly head: bigint
  readonly hasKafka: boolean
  /** Whether the store is the embedded one, which reports positions at once. */
  readonly isEmbedded: boolean
}

const readFeeds = async ({ store, database, head, hasKafka }: FeedExamination): Promise<readonly FeedReport[]> => {
  const checkpoints = await checkpointsIn(database)
  const reportOf = async (name: string): Promise<FeedReport> => {
    const after = checkpoints.get(name)
    const categories = CATEGORIES.get(name) ?? EVERYTHING
    const position = after ?? null
    try {
      return {
        name,
        position,
        ...(isOfAnotherBuild(name) ? NOT_BEHIND : await countBehind(store, { after, categories, head })),
      }
    } catch (error) {
      return { name, position, ...NOT_BEHIND, error: reasonOf(error) }
    }
  }
  return await Promise.all(namesOf(checkpoints, hasKafka).map(reportOf))
}

const isBehind = ({ name, position, behind, error }: FeedReport, { isEmbedded }: FeedExamination): boolean => {
  const tolerated = isEmbedded || CATEGORIES.has(name) ? 0 : UNREPORTED_EVENTS_MAX
  return position === null || error !== undefined || behind > tolerated
}

const checkOf = (feed: FeedReport, examination: FeedExamination): Check => {
  const { name, position, behind, seconds, error } = feed
  const check = `feed ${name}`
  const remedy =
    'Run a service with the role of this feed. If one is running, its log and the failed feeds below give the reason.'
  if (isOfAnotherBuild(name)) return notUsed(check, `at position ${position}, of another build`)
  if (position === null) return finding(check, 'It has never run here.', remedy)
  if (error !== undefined)
    return finding(check, `The store does not let a reader continue from position ${position}: ${error}`, remedy)
  if (!isBehind(feed, examination))
    return ok(check, position < 0n ? 'at the start of an empty log' : `at position ${position}, not behind`)
  const events = behind === EVENTS_COUNTED_MAX ? `${behind} events or more` : `${behind} events`
  return finding(
    check,
    `${events} behind, at position ${position}, the oldest ${seconds} s old; it did not catch up within ${GRACE_MS / 1_000} s.`,
    remedy,
  )
}

/** Every expected or existing feed. Feeds that are behind get up to GRACE_MS to reach `head`. */
export const examineFeeds = async (
  examination: FeedExamination,
): Promise<{ feeds: readonly FeedReport[]; checks: readonly Check[] }> => {
  const deadlineMs = performance.now() + GRACE_MS
  let feeds = await readFeeds(examination)
  while (feeds.some(feed => isBehind(feed, examination)) && performance.now() < deadlineMs) {
    await sleep(POLL_MS)
    feeds = await readFeeds(examination)
  }
  return { feeds, checks: feeds.map(feed => checkOf(feed, examination)) }
}
