import { workForAll } from '../fairness/currentAccount.ts'
import { type Sql, Unavailable, type World } from '../ports.ts'

/**
 * Stores personal texts in the table of personalTexts.ts. The texts that are given while a statement is under way are
 * stored together by the next one, because a statement for each request costs the service and Postgres more than the
 * text itself.
 */

/** A text, with the token that it gets unless it has one. Equal digests are equal texts of one tenant and kind. */
export type TextRow = {
  readonly token: string
  readonly tenant: string
  readonly kind: string
  readonly digest: string
  readonly text: string
}

/** By digest: the token of the text. Without a digest whose text was not stored. */
type Tokens = ReadonlyMap<string, string>

/** A statement that Postgres does not answer delays later texts no longer than this. */
const WAIT_MAX_MS = 20
const ROWS_MAX = 500

/**
 * Stores rows with different digests. The column `known` is the token of a stored text, '' for one that was erased and
 * not stored again, and null for a new one. The subquery is not a join, so that its plan uses the index however small
 * the table was when the statement was prepared. Rows are inserted in the order of their digests, because two
 * statements that wait for each other's rows would be a deadlock.
 */
const storing = (condition: string): string =>
  `with given as materialized (
      select *, (select max(case when erased_at is null then token else '' end)
                   from personal_texts where digest = asked.digest) as known
        from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])
          as asked (token, tenant_id, kind, digest, text)),
    stored as (insert into personal_texts (token, tenant_id, kind, digest, text)
      select token, tenant_id, kind, digest, text from given where ${condition} order by digest
      on conflict do nothing returning digest, token)
    select digest, token from stored union all select digest, known from given where known <> ''`
const STORE = storing('known is null')
const STORE_AGAIN = storing("coalesce(known, '') = ''")

const runFor = async (sql: Sql, statement: string, rows: readonly TextRow[]): Promise<Tokens> => {
  const columns = (['token', 'tenant', 'kind', 'digest', 'text'] as const).map(name => rows.map(row => row[name]))
  const stored = await sql<{ digest: string; token: string }>(statement, columns)
  return new Map(stored.map(({ digest, token }) => [digest, token]))
}

export type PersonalTextStorage = {
  /**
   * Stores the text, or finds it. Resolves with its token; with undefined for a text that was erased, or that another
   * process stores at this moment. Throws Unavailable, and the errors of Postgres for a text that it refuses.
   */
  readonly store: (row: TextRow) => Promise<string | undefined>
  /** The same, in a statement of its own, and an erased text is stored again. */
  readonly storeAgain: (row: TextRow) => Promise<string | undefined>
}

type Batch = { readonly rows: Map<string, TextRow>; readonly stored: Promise<Tokens> }

type Turns = {
  /** Resolves when no statement is under way, or the last one has been for WAIT_MAX_MS. */
  readonly free: () => Promise<void>
  readonly take: <T>(answer: Promise<T>) => Promise<T>
}

const createTurns = (world: Pick<World, 'sleep'>): Turns => {
  let underWay: Promise<void> | undefined
  return {
    free: async () => {
      if (underWay === undefined) return
      const answered = new AbortController()
      const over = underWay.finally(() => answered.abort('over'))
      await Promise.race([over, world.sleep(WAIT_MAX_MS, answered.signal)])
    },
    take: answer => {
      const end = (): void => {
        if (underWay === settled) underWay = undefined
      }
      const settled = answer.then(end, end)
      underWay = settled
      return answer
    },
  }
}

export const createPersonalTextStorage = (sql: Sql, world: Pick<World, 'sleep'>): PersonalTextStorage => {
  const turns = createTurns(world)
  /** The texts that the next statement stores. */
  let gathering: Batch | undefined

  const begin = (): Batch => {
    const rows = new Map<string, TextRow>()
    const stored = turns.free().then(() => {
      if (gathering === batch) gathering = undefined
      return turns.take(runFor(sql, STORE, [...rows.values()]))
    })
    const batch = { rows, stored }
    return batch
  }

  return {
    store: async row => {
      const { rows, stored } = (gathering ??= workForAll(begin))
      if (!rows.has(row.digest)) rows.set(row.digest, row)
      if (rows.size >= ROWS_MAX) gathering = undefined
      try {
        return (await stored).get(row.digest)
      } catch (error) {
        if (error instanceof Unavailable || rows.size === 1) throw error
        // A text that Postgres refuses fails all that were sent with it. Each alone, only its own request fails.
        return (await runFor(sql, STORE, [row])).get(row.digest)
      }
    },
    storeAgain: async row => (await runFor(sql, STORE_AGAIN, [row])).get(row.digest),
  }
}

/** Throws Unavailable with the effect `none`, whatever the effect on the table. */
export const withoutEffect = async <T>(work: Promise<T>): Promise<T> => {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error
    throw new Unavailable(error.dependency, { effect: 'none', cause: error })
  }
}
