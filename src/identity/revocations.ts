import type { Database } from '../ports.ts'
import { MAX_USER_LIFETIME_SECONDS, LEEWAY_SECONDS } from './claims.ts'

/** What a token can be revoked by. */
export type Revocable = {
  /** Its `jti`. */
  readonly tokenId: string
  /** The grant that it was given out under, as the issuer names it; a workload's token has none. */
  readonly grant: string | undefined
}

/** Tokens that must not be believed any more, though their signature and their time are good. */
export type Revocations = {
  /** A grant's name, or `tokenName` of a token. Counts in this process at once, in others within MAX_AGE_MS. */
  readonly revoke: (name: string) => Promise<void>
  /** At once in nearly all cases; a promise when the list must be read first. Never rejects. */
  readonly isRevoked: (token: Revocable) => boolean | Promise<boolean>
}

/** No token lives longer, so nothing needs to be remembered longer. */
const KEPT_SECONDS = MAX_USER_LIFETIME_SECONDS + 2 * LEEWAY_SECONDS
/** In use, the list is read again behind the requests' back when it is this old. */
const REFRESH_AFTER_MS = 1_500
/** Older than this, it is read before anything is believed. */
const MAX_AGE_MS = 3_000
const RETRY_AFTER_MS = 1_000
/** Any two processes that start at once agree on who creates the table by this number. */
const TABLE_LOCK = 5_170_204
const CREATE_TABLE = `create table if not exists issuer_revocations_v1
  (name text primary key, expires_at timestamptz not null)`
const INSERT = `insert into issuer_revocations_v1 (name, expires_at) values ($1, now() + make_interval(secs => $2))
  on conflict (name) do nothing`
const SWEEP = 'delete from issuer_revocations_v1 where expires_at <= now()'
const SELECT = 'select name from issuer_revocations_v1 where expires_at > now()'

export const tokenName = (tokenId: string): string => `token:${tokenId}`

const isIn = (names: ReadonlySet<string>, { tokenId, grant }: Revocable): boolean =>
  names.has(tokenName(tokenId)) || (grant !== undefined && names.has(grant))

export type RevocationsOptions = {
  readonly database: Database
  /** Told each time that the list could not be read. */
  readonly onUnread: (error: unknown) => void
  /** Milliseconds from any origin that never jump. */
  readonly monotonicNow?: () => number
}

/**
 * The list for all instances, in Postgres. While the database does not answer, the last list that was read goes on
 * counting: payments do not stop because of it, and what was revoked before stays revoked.
 */
export const openRevocations = async ({
  database,
  onUnread,
  monotonicNow = () => performance.now(),
}: RevocationsOptions): Promise<Revocations> => {
  const { sql } = database
  await database.transaction(async sql => {
    await sql('select pg_advisory_xact_lock($1)', [TABLE_LOCK])
    await sql(CREATE_TABLE)
  })
  let names = new Set<string>()
  let readAt = Number.NEGATIVE_INFINITY
  let failedAt = Number.NEGATIVE_INFINITY
  let underWay: Promise<void> | undefined
  /** Revoked here, until when: a reading that is under way may have begun too early to bring it. */
  const own = new Map<string, number>()

  const readOnce = async (): Promise<void> => {
    const startedAt = monotonicNow()
    for (const [name, until] of own) if (until < startedAt) own.delete(name)
    try {
      const rows = await sql<{ name: string }>(SELECT)
      names = new Set([...rows.map(({ name }) => name), ...own.keys()])
      readAt = startedAt
      failedAt = Number.NEGATIVE_INFINITY
    } catch (error) {
      failedAt = monotonicNow()
      onUnread(error)
    }
  }

  /** Resolves once the list is young enough; undefined when it already is, or when the database is known to be away. */
  const settle = (): Promise<void> | undefined => {
    const ageMs = monotonicNow() - readAt
    if (ageMs < REFRESH_AFTER_MS || monotonicNow() - failedAt < RETRY_AFTER_MS) return undefined
    const isFailing = failedAt !== Number.NEGATIVE_INFINITY
    underWay ??= readOnce().finally(() => {
      underWay = undefined
    })
    return ageMs < MAX_AGE_MS || isFailing ? undefined : underWay
  }

  return {
    revoke: async name => {
      // Before the database is asked: even when it is away, this process believes the token no more.
      own.set(name, monotonicNow() + KEPT_SECONDS * 1_000)
      names.add(name)
      await sql(INSERT, [name, KEPT_SECONDS])
      await sql(SWEEP)
    },
    isRevoked: token => {
      const settling = settle()
      return settling ? settling.then(() => isIn(names, token)) : isIn(names, token)
    },
  }
}

/** For an issuer and a verifier in one process, without a database: forgotten at a restart. */
export const createRevocations = (): Revocations => {
  const names = new Set<string>()
  return { revoke: async name => void names.add(name), isRevoked: token => isIn(names, token) }
}
