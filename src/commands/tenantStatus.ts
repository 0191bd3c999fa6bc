import { LRUCache } from 'lru-cache'
import type { TenantCommand, TenantState } from '../../streams/tenant/index.ts'
import { Unavailable } from '../ports.ts'
import { tenantEntity } from './entities.ts'
import { type Context, handle, type Ledger } from './handle.ts'
import { derivedId } from './identifiers.ts'

/**
 * Suspensions of tenants and revoked scopes of their subjects: set by operators, and independent of any token's claims.
 */

const tenantIdOf = (tenant: string) => derivedId('ten', tenant)

/** Records an operator's decision. Repeating it changes nothing. */
export const changeTenantStatus = async (
  ledger: Ledger,
  command: TenantCommand,
  context: Context,
): Promise<TenantState> => {
  const changed = await handle(ledger, tenantEntity, tenantIdOf(context.tenant), { command, context })
  if (!changed.ok) throw new Error('Others change how this tenant stands all the time; try again.')
  return changed.state
}

/** A status younger than this is served from the cache. */
const FRESH_MS = 1_000
const STALE_MS = 4_000
const KEPT_MAX = 10_000

type Known = { state: TenantState; readAtMs: number; reading: Promise<void> | undefined }

export type TenantStatuses = (tenant: string) => Promise<TenantState> | TenantState

/**
 * The status of a tenant, at most STALE_MS old, so that a decision of an operator takes effect on every instance within
 * that time. While the store does not answer, the last known status counts; for an unknown tenant it throws
 * Unavailable.
 */
export const createTenantStatuses = (
  { aggregates, world }: Ledger,
  monotonicNow = () => world.monotonicMs(),
): TenantStatuses => {
  const known = new LRUCache<string, Known>({ max: KEPT_MAX })

  const read = async (tenant: string): Promise<Known> => {
    const { state } = await aggregates.load(tenantEntity, tenantIdOf(tenant))
    const fresh: Known = { state, readAtMs: monotonicNow(), reading: undefined }
    known.set(tenant, fresh)
    return fresh
  }

  const readAgain = (tenant: string, entry: Known): Promise<void> => {
    entry.reading ??= read(tenant)
      .then(
        () => undefined,
        (error: unknown) => {
          if (!(error instanceof Unavailable)) throw error
        },
      )
      .finally(() => {
        entry.reading = undefined
      })
    return entry.reading
  }

  const afterReading = async (tenant: string, entry: Known): Promise<TenantState> => {
    await readAgain(tenant, entry)
    return (known.get(tenant) ?? entry).state
  }

  return tenant => {
    const entry = known.get(tenant)
    if (entry === undefined) return read(tenant).then(({ state }) => state)
    const ageMs = monotonicNow() - entry.readAtMs
    if (ageMs >= STALE_MS) return afterReading(tenant, entry)
    if (ageMs >= FRESH_MS) void readAgain(tenant, entry).catch(() => undefined)
    return entry.state
  }
}
