import { LRUCache } from 'lru-cache'
import { isId, type Id } from '../../streams/ids.ts'
import { type Sql, Unavailable, type World } from '../ports.ts'
import type { Ledger } from '../commands/commandHandler.ts'
import { keyedHash, randomId } from '../lib/identifiers.ts'
import { workForAll } from '../fairness/currentAccount.ts'

/**
 * Events are never changed, so a text that may have to be erased is not in them: they have a token in its place, and
 * readers get the text from the table personal_texts, or null after its erasure (personalData.md). A text is stored
 * before the event with its token is appended; if that fails, the next use of the text finds it.
 */

/** The kinds of personal texts, each with the prefix of its tokens. */
const PREFIXES = { customer_reference: 'prs', payment_reference: 'prf' } as const
export type PersonalKind = keyof typeof PREFIXES
export type PersonalToken = Id<(typeof PREFIXES)[PersonalKind]>

/** A text as a tenant gives it. It is compared exactly, without any normalisation. */
export type PersonalText = { readonly tenant: string; readonly kind: PersonalKind; readonly text: string }

/** By token: the text, or null where it was erased. */
export type Texts = ReadonlyMap<string, string | null>
export const NO_TEXTS: Texts = new Map()

/** The members of resources and events that have a token, with the kind of its text. */
const PERSONAL_MEMBERS: Readonly<Record<string, PersonalKind>> = {
  customer_reference: 'customer_reference',
  reference: 'payment_reference',
}

const isTokenOf = (kind: PersonalKind, value: unknown): value is PersonalToken =>
  typeof value === 'string' && isId(PREFIXES[kind], value)

export const isPersonalToken = (value: unknown): value is PersonalToken =>
  isTokenOf('customer_reference', value) || isTokenOf('payment_reference', value)

export const kindOf = (token: PersonalToken): PersonalKind =>
  isTokenOf('customer_reference', token) ? 'customer_reference' : 'payment_reference'

const MEMBERS = Object.entries(PERSONAL_MEMBERS)

const membersWithToken = (row: object): string[] =>
  MEMBERS.filter(([member, kind]) => isTokenOf(kind, Reflect.get(row, member))).map(([member]) => member)

const tokensIn = (row: object): PersonalToken[] => membersWithToken(row).map(member => Reflect.get(row, member))

export const tokensOf = (rows: readonly object[]): readonly PersonalToken[] => [...new Set(rows.flatMap(tokensIn))]

/** The row with its texts instead of its tokens; null for a text that was erased, or is not in the table. */
export const withTexts = <R extends object>(row: R, texts: Texts): R => {
  const members = membersWithToken(row)
  if (members.length === 0) return row
  const textOf = (member: string): string | null => texts.get(Reflect.get<object, string>(row, member)) ?? null
  return { ...row, ...Object.fromEntries(members.map(member => [member, textOf(member)])) }
}

/** Whether the row has the token of an erased text. One that was not looked up counts as present. */
export const hasErased = (row: object, texts: Texts): boolean => tokensIn(row).some(token => texts.get(token) === null)

/** Reads the texts of the tokens in one statement; none for no tokens. A token of another tenant has no text. */
export const readTexts = async (sql: Sql, tenant: string, tokens: readonly string[]): Promise<Texts> => {
  if (tokens.length === 0) return NO_TEXTS
  const rows = await sql<{ token: string; text: string | null }>(
    'select token, text from personal_texts where tenant_id = $1 and token = any($2::text[])',
    [tenant, tokens],
  )
  return new Map(rows.map(({ token, text }) => [token, text]))
}

/** The number of texts of this kind that the tenant has had erased. It never decreases. */
export const erasedCount = async (sql: Sql, tenant: string, kind: PersonalKind): Promise<bigint> => {
  const [counted] = await sql<{ count: bigint }>(
    'select count(*) as count from personal_texts where kind = $1 and tenant_id = $2 and erased_at is not null',
    [kind, tenant],
  )
  return counted?.count ?? 0n
}

/** The keyed hash of a text. It needs the secret of the log, and no database. */
export const digestOf = async (
  { idSecret }: Pick<Ledger, 'idSecret'>,
  { tenant, kind, text }: PersonalText,
): Promise<string> => keyedHash(await idSecret(), ['personal text', kind, tenant, text])

export type PersonalTexts = {
  /** Stands for the text in idempotency records, so equal requests are recognised without it. */
  readonly digest: (personal: PersonalText) => Promise<string>
  /**
   * Resolves to the token of the text; undefined for one that was erased, or that another process stores now:
   * `storeAgain` gives it a new token. Both throw QuotaExceeded, and Unavailable with the effect `none`.
   */
  readonly store: (personal: PersonalText) => Promise<PersonalToken | undefined>
  readonly storeAgain: (personal: PersonalText) => Promise<PersonalToken>
  /** The token of a text that is stored and not erased: for filters. Throws Unavailable. */
  readonly find: (personal: PersonalText) => Promise<PersonalToken | undefined>
  /** The text of each of these tokens, or null. An erasure takes effect within CACHED_FOR_MS. Throws Unavailable. */
  readonly read: (tenant: string, tokens: readonly string[]) => Promise<Texts>
}

/** A text that was read or stored is cached for this time, which is the longest delay of an erasure. */
const CACHED_FOR_MS = 2_000
const CACHED_MAX = 10_000
/** Other requests may store or erase the same text meanwhile. */
const STORE_ATTEMPTS_MAX = 5

/** The texts that were read or stored in the last CACHED_FOR_MS. */
type TextCache = {
  readonly remember: (text: { tenant: string; token: string; text: string | null }, sinceMs: number) => void
  /** Undefined for a text that is not cached. */
  readonly recall: (tenant: string, token: string) => string | null | undefined
}

const createTextCache = (world: Pick<World, 'monotonicMs'>): TextCache => {
  const entries = new LRUCache<string, { readonly text: string | null; readonly untilMs: number }>({ max: CACHED_MAX })
  const keyOf = (tenant: string, token: string): string => `${tenant} ${token}`
  return {
    remember: ({ tenant, token, text }, sinceMs) =>
      void entries.set(keyOf(tenant, token), { text, untilMs: sinceMs + CACHED_FOR_MS }),
    recall: (tenant, token) => {
      const cached = entries.get(keyOf(tenant, token))
      return cached !== undefined && cached.untilMs > world.monotonicMs() ? cached.text : undefined
    },
  }
}

const readCached = async (
  { cache, world, sql }: { readonly cache: TextCache; readonly world: World; readonly sql: Sql },
  tenant: string,
  tokens: readonly string[],
): Promise<Texts> => {
  const texts = new Map<string, string | null>()
  for (const token of tokens) {
    const text = cache.recall(tenant, token)
    if (text !== undefined) texts.set(token, text)
  }
  const sinceMs = world.monotonicMs()
  const unknown = tokens.filter(token => !texts.has(token))
  const stored = await readTexts(sql, tenant, unknown)
  for (const token of unknown) {
    const text = stored.get(token) ?? null
    cache.remember({ tenant, token, text }, sinceMs)
    texts.set(token, text)
  }
  return texts
}

type TextsLedger = Pick<Ledger, 'idSecret' | 'world' | 'byteQuota'>

export const createPersonalTexts = (sql: Sql, ledger: TextsLedger): PersonalTexts => {
  const { world } = ledger
  const cache = createTextCache(world)
  const storage = createPersonalTextStorage(sql, world)
  const digest = (personal: PersonalText): Promise<string> => digestOf(ledger, personal)

  const storeBy = async (store: PersonalTextStorage['store'], personal: PersonalText) => {
    const { tenant, kind, text } = personal
    await ledger.byteQuota.check(tenant, 'command')
    const sinceMs = world.monotonicMs()
    const row = { ...personal, token: randomId(PREFIXES[kind], world), digest: await digest(personal) }
    const token = await withoutEffect(store(row))
    if (token === undefined) return undefined
    if (token === row.token) ledger.byteQuota.count(tenant, Buffer.byteLength(text))
    cache.remember({ tenant, token, text }, sinceMs)
    return token as PersonalToken
  }

  return {
    digest,
    store: personal => storeBy(storage.store, personal),
    storeAgain: async personal => {
      for (let attempt = 1; attempt <= STORE_ATTEMPTS_MAX; attempt++) {
        const token = await storeBy(storage.storeAgain, personal)
        if (token !== undefined) return token
      }
      const cause = new Error('The text was stored and erased by others at each attempt.')
      throw new Unavailable('database', { effect: 'none', cause })
    },
    find: async personal => {
      const present = 'select token from personal_texts where digest = $1 and erased_at is null'
      return (await sql<{ token: PersonalToken }>(present, [await digest(personal)]))[0]?.token
    },
    read: (tenant, tokens) => readCached({ sql, cache, world }, tenant, tokens),
  }
}

/**
 * For a command whose key may have been used before: a text that was erased since must not be stored again, so
 * `answerOfKey` is asked first. Throws Unavailable with the effect `none`, and QuotaExceeded.
 */
export const storeUnlessBound = async <T>(
  texts: PersonalTexts,
  personal: PersonalText,
  answerOfKey: () => Promise<T | undefined>,
): Promise<{ readonly token: PersonalToken } | { readonly answer: T }> => {
  const token = await texts.store(personal)
  if (token !== undefined) return { token }
  const answer = await answerOfKey()
  return answer === undefined ? { token: await texts.storeAgain(personal) } : { answer }
}

// The storage: texts that come while a statement is in flight are stored together by the next one, because a statement for
// each request costs the service and Postgres more than the text itself.

/** A text, with the token that it gets unless it has one. Equal digests are equal texts of one tenant and kind. */
type TextRow = {
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
 * `known`: the token of a stored text, '' for an erased one, null for a new one. A subquery, not a join, uses the index
 * however small the table was when it was prepared. The order of the digests avoids deadlocks.
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

type PersonalTextStorage = {
  /**
   * The token of the text, stored or found; undefined for one that was erased or that another process stores now.
   * Throws Unavailable, and the errors of Postgres for a text that it refuses.
   */
  readonly store: (row: TextRow) => Promise<string | undefined>
  /** The same, in a statement of its own, and an erased text is stored again. */
  readonly storeAgain: (row: TextRow) => Promise<string | undefined>
}

type Batch = { readonly rows: Map<string, TextRow>; readonly stored: Promise<Tokens> }

type Turns = {
  /** Resolves when no statement is in flight, or the last one has been for WAIT_MAX_MS. */
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
const withoutEffect = async <T>(work: Promise<T>): Promise<T> => {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error
    throw new Unavailable(error.dependency, { effect: 'none', cause: error })
  }
}
