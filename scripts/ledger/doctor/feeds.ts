import { setTimeout as sleep } from 'node:timers/promises'
import { journals, projections } from '../../../projections/index.ts'
import type { Database, EventStore } from '../../../src/ports.ts'
import type { Category } from '../../../streams/index.ts'
import { type Check, finding, ok } from './finding.ts'

/** How far each subscriber of the log has got, counted in the events that it still has to take. */

export type FeedReport = {
  readonly name: string
  /** Null when it has never run. */
  readonly position: bigint | null
  /** Events of its categories behind that position, up to the head; at most EVENTS_COUNTED_MAX are counted. */
  readonly behind: number
}

export const EVENTS_COUNTED_MAX = 1_000
/** A feed has this long to reach what was the head when the doctor came. Longer than a process waits before it acts. */
const GRACE_MS = 5_000
const POLL_MS = 250

/** What follows the log without being a read model. A test holds this against the processes and the publisher. */
export const FOLLOWERS = {
  settlement: ['payment'],
  fulfilment: ['order', 'invoice'],
  publisher: ['order', 'invoice', 'payment'],
} as const satisfies Readonly<Record<string, readonly Category[]>>

/** Each feed that should run, by name, with the categories that it follows. */
const feedsExpected = (hasKafka: boolean): ReadonlyMap<string, readonly string[]> => {
  const tables = Object.values(projections).map(({ name, category }) => [name, [category]] as const)
  const rows = Object.values(journals).map(({ name, categories }) => [name, categories] as const)
  const others = Object.entries(FOLLOWERS).filter(([name]) => hasKafka || name !== 'publisher')
  return new Map<string, readonly string[]>([...tables, ...rows, ...others])
}

type Checkpoint = { readonly name: string; readonly position: bigint }

/** The table is made by the first service that starts; before that no feed has run. */
const checkpointsIn = async ({ sql }: Database): Promise<ReadonlyMap<string, bigint>> => {
  const [found] = await sql<{ there: boolean }>(`select to_regclass('checkpoints') is not null as there`)
  if (found?.there !== true) return new Map()
  const rows = await sql<Checkpoint>('select name, position from checkpoints')
  return new Map(rows.map(({ name, position }) => [name, position]))
}

type Wanted = { readonly after: bigint | undefined; readonly categories: readonly string[]; readonly head: bigint }

/** Counted and not subtracted: between the positions of one category lie those of all the others. */
const countBehind = async (store: EventStore, { after, categories, head }: Wanted): Promise<number> => {
  if (after !== undefined && after >= head) return 0
  const stop = new AbortController()
  const start = after === undefined || after < 0n ? 'start' : after
  let count = 0
  try {
    for await (const item of store.subscribe({ after: start, categories, signal: stop.signal })) {
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

export type FeedParts = { readonly store: EventStore; readonly database: Database; readonly hasKafka: boolean }

const look = async ({ store, database, hasKafka }: FeedParts, head: bigint): Promise<readonly FeedReport[]> => {
  const positions = await checkpointsIn(database)
  const expected = [...feedsExpected(hasKafka)]
  return await Promise.all(
    expected.map(async ([name, categories]) => {
      const after = positions.get(name)
      return { name, position: after ?? null, behind: await countBehind(store, { after, categories, head }) }
    }),
  )
}

const isBehind = ({ position, behind }: FeedReport): boolean => position === null || behind > 0

const checkOf = (feed: FeedReport): Check => {
  const { name, position, behind } = feed
  const check = `feed ${name}`
  const wayOut = 'See /readyz and the log for the reason; a service with the role of this feed must run.'
  if (position === null) return finding(check, 'It has never run here.', wayOut)
  if (!isBehind(feed))
    return ok(check, position < 0n ? 'at the start of an empty log' : `at position ${position}, not behind`)
  const events = behind === EVENTS_COUNTED_MAX ? `${behind} events or more` : `${behind} events`
  return finding(check, `${events} behind, at position ${position}, and not there after ${GRACE_MS / 1_000} s.`, wayOut)
}

/** Every feed of this build. One that is on its way gets a moment to arrive at `head`. */
export const examineFeeds = async (
  parts: FeedParts,
  head: bigint,
): Promise<{ feeds: readonly FeedReport[]; checks: readonly Check[] }> => {
  const givenUpAtMs = performance.now() + GRACE_MS
  let feeds = await look(parts, head)
  while (feeds.some(isBehind) && performance.now() < givenUpAtMs) {
    await sleep(POLL_MS)
    feeds = await look(parts, head)
  }
  return { feeds, checks: feeds.map(checkOf) }
}
