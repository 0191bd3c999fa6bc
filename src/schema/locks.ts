import { createHash } from 'node:crypto'

/** All advisory locks, so that no two share a number. None is reused: an older process may hold it. */

/** Locks by number. The first ones serialize the creation of tables by processes that start at once. */
export const ADVISORY_LOCKS = {
  operationalTables: 5_170_201,
  rateCounters: 5_170_202,
  issuerRevocations: 5_170_204,
  cursorSecrets: 5_170_205,
  evidence: 5_170_216,
  /** Held by the only writer of an embedded event store, in its own database. */
  embeddedEventStore: 0x65_73_64_62,
} as const

/** Locks by name, whose number is `hashtextextended(name, 0)`. They serialize reservations on all instances. */
export const LOCK_NAMES = {
  reservationsOf: (quota: string, tenant: string): string => `${quota} of ${tenant}`,
} as const

/** The leases of the groups of feeds (compose/feeds.ts). `ledger projections reset` holds all of them. */
export const FEED_LEASES = ['projector', 'worker', 'publisher', 'subscriptions', 'rebuild', 'sealer'] as const
export type FeedLease = (typeof FEED_LEASES)[number]

/** The lock of a lease. The prefix separates it from locks of other programs in the same database. */
export const leaseLock = (name: string): bigint =>
  createHash('sha256').update(`ledger:${name}`).digest().readBigInt64BE()
