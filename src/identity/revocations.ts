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
  /**
   * Revokes a grant by its name or a token by `tokenName`: in this process and its siblings at once, in other instances within
   * `maxAgeMs`.
   */
  readonly revoke: (name: string) => Promise<void>
  /** A sibling process revoked this name. */
  readonly learn: (name: string) => void
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
  /** Tells the other processes of this service, and resolves when they know. Must not reject. */
  readonly tellSiblings?: (name: string) => Promise<void>
  /** A monotonic clock in milliseconds. */
  readonly monotonicNow?: () => number
}

/**
 * The list for all instances, in Postgres. While the database does not answer, the last list counts, so payments continue
 * and revoked tokens stay revoked.
 */
export const openRevocations = async ({
  database,
  onUnread,
  tellSiblings = async () => undefined,
  monotonicNow = () => performance.now(),
}: RevocationsOptions): Promise<Revocations> => {
  const { sql } = database
  await createTables(database, 'issuerRevocations')
  /** Names revoked by this process and its siblings, with the time until which they are kept: a reading may have begun before the insert. */
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

  const learn = (name: string): void => void own.set(name, monotonicNow() + KEPT_SECONDS * 1_000)

  return {
    learn,
    revoke: async name => {
      // Before the insert, so this service refuses the token even when the database does not answer.
      learn(name)
      await tellSiblings(name)
      await sql(INSERT, [name, KEPT_SECONDS])
      await sql(SWEEP)
    },
    isRevoked: token => {
      const reading = listed.ready()
      return reading ? reading.then(() => isRevoked(token)) : isRevoked(token)
    },
  }
}

/** A list in memory, for an issuer and a verifier in one process without a database; lost at a restart. */
export const createRevocations = (): Revocations => {
  const names = new Set<string>()
  const learn = (name: string): void => void names.add(name)
  return { revoke: async name => learn(name), learn, isRevoked: token => isIn(names, token) }
}
