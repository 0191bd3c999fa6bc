import { createHash } from 'node:crypto'
import { type FactId, factIds, missingFacts, type MissingRow } from '../../projections/facts/queries.ts'
import { prefixOfTopic, topicOfSubject } from '../../projections/factTopics.ts'
import { type Sql, Unavailable } from '../ports.ts'

/** Counts the facts between two positions, hashes their ids, and names those that are missing, as they are parked. */

/** Small, since the rows of a batch are decoded in one turn of the event loop. */
const BATCH = 2_000

export type Counted = { readonly topic: string; readonly count: number; readonly sha256: string }

export type FactRange = {
  readonly topics: readonly string[]
  /** All tenants when absent. */
  readonly tenant?: string
  /** Both inclusive. */
  readonly from: bigint
  readonly to: bigint
  readonly signal?: AbortSignal
}

const counterOf = (topic: string) => {
  const hash = createHash('sha256')
  let count = 0
  return {
    add: (rows: readonly FactId[]): void => {
      const ids = rows.filter(({ subject }) => topicOfSubject(subject) === topic).map(({ id }) => `${id}\n`)
      count += ids.length
      hash.update(ids.join(''))
    },
    end: (): Counted => ({ topic, count, sha256: hash.digest('hex') }),
  }
}

/** Ids in the order of positions, each followed by a line feed. Throws the reason of the aborted signal. */
export const countFacts = async (sql: Sql, range: FactRange): Promise<readonly Counted[]> => {
  const { topics, tenant, from, to, signal } = range
  const counters = topics.map(counterOf)
  for (let after = from - 1n; after < to; ) {
    signal?.throwIfAborted()
    const { text, values } = factIds({ tenant, after, to, limit: BATCH })
    const rows = await sql<FactId>(text, values)
    for (const counter of counters) counter.add(rows)
    after = rows.length < BATCH ? to : (rows.at(-1)?.position ?? to)
  }
  return counters.map(counter => counter.end())
}

/** At most this many missing facts are named. A sealed range ends before the first one beyond them. */
export const MISSING_MAX = 100

/** The missing facts in the order of positions, up to one more than are named. */
export const missingIn = async (
  sql: Sql,
  { topic, ...range }: Omit<FactRange, 'topics'> & { readonly topic: string },
): Promise<readonly MissingRow[]> => {
  const { text, values } = missingFacts({ ...range, prefix: prefixOfTopic(topic), limit: MISSING_MAX + 1 })
  return sql<MissingRow>(text, values)
}

export type Proof = Counted & { readonly missing: readonly MissingRow[] }

const ROUNDS_MAX = 5

/** Repeats the count until no fact came meanwhile. Throws Unavailable when facts keep coming. */
export const proveFacts = async (sql: Sql, range: FactRange): Promise<readonly Proof[]> => {
  const { topics, ...rest } = range
  const missing = (): Promise<(readonly MissingRow[])[]> =>
    Promise.all(topics.map(topic => missingIn(sql, { ...rest, topic })))
  let before = await missing()
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const counted = await countFacts(sql, range)
    const after = await missing()
    if (idsIn(before) === idsIn(after))
      return counted.map((one, index) => ({ ...one, missing: (after[index] ?? []).slice(0, MISSING_MAX) }))
    before = after
  }
  throw new Unavailable('database', {
    effect: 'none',
    cause: new Error('Facts that were held back come while they are counted.'),
  })
}

const idsIn = (missing: readonly (readonly MissingRow[])[]): string =>
  missing.map(rows => rows.map(({ id }) => id).join()).join(';')
