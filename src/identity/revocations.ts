import type { Database } from '../ports.ts'
import { createTables } from '../schema/tables.ts'
import { createRevalidated, type RevalidationTimes } from '../lib/staleWhileRevalidate.ts'
import { MAX_USER_LIFETIME_SECONDS, LEEWAY_SECONDS } from './claims.ts'

/** Revoked access tokens, shared by all instances through Postgres. */

/** The names by which a token can be revoked. */
export type Revocable = {
  /** Its `jti`. */
  readonly tokenId: string
  /** The issuer's name of the grant; tokens of workloads have none. */
  readonly grant: string | undefined
}

/** Tokens that are refused although their signature and times are valid. */
export type Revocations = {
  /** Revokes a grant by its name or a token by `tokenName`: in this process at once, in others within `maxAgeMs`. */
  readonly revoke: (name: string) => Promise<void>
  /** Synchronous in nearly all cases; a promise when the list must be read first. Never rejects. */
  readonly isRevoked: (token: Revocable) => boolean | Promise<boolean>
}

/** A revocation is kept for the longest time that a token is accepted; the leeway counts for `iat` and for `exp`. */
const KEPT_SECONDS = MAX_USER_LIFETIME_SECONDS + 2 * LEEWAY_SECONDS
const TIMES: RevalidationTimes = {
  refreshAfterMs: 1_500,
  // Older than this, the list is read again before a token is accepted.
  maxAgeMs: 3_000,
  outageMaxMs: Number.POSITIVE_INFINITY,
  retryAfterMs: 1_000,
}
const INSERT = `insert into issuer_revocations_v1 (name, expires_at) values ($1, now() + make_interval(secs => $2))
  on conflict (name) do nothing`
const SWEEP = 'delete from issuer_revocations_v1 where expires_at <= now()'
const SELECT = 'select name from issuer_revocations_v1 where expires_at > now()'

export const tokenName = (tokenId: string): string => `token:${tokenId}`

const isIn = (names: Pick<ReadonlySet<string>, 'has'>, { tokenId, grant }: Revocable): boolean =>
  names.has(tokenName(tokenId)) || (grant !== undefined && names.has(grant))

export type RevocationsOptions = {
  readonly database: Database
  /** Called each time that the list could not be read. */
  readonly onUnread: (error: unknown) => void
  /** A monotonic clock in milliseconds. */
  readonly monotonicNow?: () => number
}

/** While the database does not answer, the last list counts: payments continue, revoked tokens stay revoked. */
export const openRevocations = async ({
  database,
  onUnread,
  monotonicNow = () => performance.now(),
}: RevocationsOptions): Promise<Revocations> => {
  const { sql } = database
  await createTables(database, 'issuerRevocations')
  /** Names revoked in this process, with the time until which they are kept: a reading may have begun before the insert. */
  const own = new Map<string, number>()
  const listed = createRevalidated<Set<string>>({
    ...TIMES,
    monotonicNow,
    read: async () => {
      const startedAt = monotonicNow()
      for (const [name, until] of own) if (until < startedAt) own.delete(name)
      const rows = await sql<{ name: string }>(SELECT)
      return new Set(rows.map(({ name }) => name))
    },
    onFailure: onUnread,
  })
  const isRevoked = (token: Revocable): boolean => isIn(own, token) || isIn(listed.value() ?? new Set(), token)

  return {
    revoke: async name => {
      // Before the insert: this process refuses the token even when the database does not answer.
      own.set(name, monotonicNow() + KEPT_SECONDS * 1_000)
      await sql(INSERT, [name, KEPT_SECONDS])
      await sql(SWEEP)
    },
    isRevoked: token => {
      const reading = listed.ready()
      return reading ? reading.then(() => isRevoked(token)) : isRevoked(token)
    },
  }
}
