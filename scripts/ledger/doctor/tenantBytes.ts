import { bytesText } from '../../../src/commands/quotas/byteQuota.ts'
import { tenantsAbove } from '../../../src/commands/quotas/tenantBytes.ts'
import type { Database } from '../../../src/ports.ts'
import { relationExists } from '../../../src/schema/existingRelations.ts'
import { type Check, finding, ok } from './finding.ts'

/** The check of the bytes that tenants have stored today. */

const CHECK = 'tenant storage'
const NEAR_SHARE = 0.8

/** Names the tenants that have used 80 % of their quota, which is before their commands are refused. */
export const checkTenantBytes = async ({ sql }: Database, bytesPerDay: number): Promise<Check> => {
  const isThere = await relationExists(sql, 'tenant_bytes')
  const near = isThere ? await tenantsAbove(sql, bytesPerDay * NEAR_SHARE) : []
  if (near.length === 0) return ok(CHECK, `no tenant has used ${NEAR_SHARE * 100} % of ${bytesText(bytesPerDay)} today`)
  const named = near.map(({ tenant, bytes }) => `${tenant} ${bytesText(bytes)}`)
  return finding(
    CHECK,
    `Stored today, of ${bytesText(bytesPerDay)} a day: ${named.join(', ')}.`,
    'New commands of a tenant are refused once its quota is exhausted, until 00:00 UTC: find out why it stores so much, or raise TENANT_BYTES_PER_DAY.',
  )
}
