import type { JsonObject } from '../../ports.ts'

/**
 * The bytes that a tenant may store each day, since the log is never deleted. The command handler and the personal
 * texts check and count.
 */

/**
 * `command`: refused once the quota is used up. `audit_record`: may use AUDIT_SHARE more, so that reading and refusals
 * can still be recorded. `completion`: counted, and never refused.
 */
export type QuotaUse = 'command' | 'audit_record' | 'completion'

const AUDIT_SHARE = 0.1

/** `use`: `command` when absent. `tenant`: the one that pays, where its caller causes records of another tenant. */
export type Charge = { readonly use?: QuotaUse; readonly tenant?: string }
type Charged = { readonly tenant: string; readonly quota?: Charge }

export const chargedTenant = ({ tenant, quota }: Charged): string => quota?.tenant ?? tenant

export type ByteQuota = {
  /** Throws QuotaExceeded. It resolves without a statement while the tenant is far from its quota. */
  readonly check: (tenant: string, use: QuotaUse) => Promise<void>
  /** Adds bytes that are stored. */
  readonly count: (tenant: string, bytes: number) => void
}

/** For operators' commands and tests. */
export const NO_BYTE_QUOTA: ByteQuota = { check: async () => undefined, count: () => undefined }

/** A command that has begun is finished, so no payment waits for the next day to have an outcome. */
export const checkQuota = async (
  { byteQuota, hasEffect }: { readonly byteQuota: ByteQuota; readonly hasEffect: () => boolean },
  context: Charged,
): Promise<void> => {
  if (!hasEffect()) await byteQuota.check(chargedTenant(context), context.quota?.use ?? 'command')
}

export const maxBytesFor = (use: QuotaUse, bytesPerDay: number): number => {
  if (use === 'completion') return Infinity
  return use === 'audit_record' ? bytesPerDay * (1 + AUDIT_SHARE) : bytesPerDay
}

/** The tenant's quota is used up, and nothing of the command was stored. */
export class QuotaExceeded extends Error {
  readonly usedBytes: number
  readonly bytesPerDay: number
  /** The time until the end of the day. */
  readonly resetMs: number

  constructor(usage: { readonly usedBytes: number; readonly bytesPerDay: number; readonly resetMs: number }) {
    super(`The tenant has stored ${bytesText(usage.usedBytes)} of ${bytesText(usage.bytesPerDay)} today.`)
    this.name = 'QuotaExceeded'
    this.usedBytes = usage.usedBytes
    this.bytesPerDay = usage.bytesPerDay
    this.resetMs = usage.resetMs
  }
}

const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB']
const KIB = 1024

/** `5 GiB`, `4.97 GiB`, `812 bytes`. */
export const bytesText = (bytes: number): string => {
  const power = Math.min(UNITS.length - 1, bytes < KIB ? 0 : Math.floor(Math.log2(bytes) / Math.log2(KIB)))
  return `${Number((bytes / KIB ** power).toFixed(2))} ${UNITS[power]}`
}

type Stored = { readonly data: JsonObject; readonly metadata: JsonObject }

export const bytesOf = (events: readonly Stored[]): number =>
  events.reduce((sum, { data, metadata }) => sum + jsonBytes(data) + jsonBytes(metadata), 0)

const jsonBytes = (value: JsonObject): number => Buffer.byteLength(JSON.stringify(value))
