import { randomUUID } from 'node:crypto'
import { userInfo } from 'node:os'
import type { Context, Ledger } from '../../src/commands/commandHandler.ts'
import { recordAuditedDecision } from '../../src/commands/recordAuditedDecision.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import { TENANT_PATTERN } from '../../src/identity/principal.ts'
import { StartupError } from '../../src/lib/startupError.ts'

/** Throws a StartupError for a text that is the name of no tenant. */
export const checkedTenant = (tenant: string): string => {
  if (TENANT_PATTERN.test(tenant)) return tenant
  throw new StartupError('A tenant is 1 to 63 characters of a-z, 0-9 and -, not beginning with -.')
}

export const operatorContext = (tenant: string): Context => ({
  tenant,
  subject: userInfo().username,
  client: 'ledger-cli',
  authority: 'operator',
  correlationId: randomUUID(),
  commandId: randomUUID(),
  at: new Date(realWorld().now()).toISOString(),
})

type Access = { readonly operation: string; readonly tenant: string; readonly resource: string | null }

/** The audit record of a deed or a look, stored before it. `tenant`: that of the data; `ledger` for all. */
export const recordAccess = (ledger: Ledger, { operation, tenant, resource }: Access): Promise<void> =>
  recordAuditedDecision(ledger, { type: 'GrantAccess', operation, resource }, operatorContext(tenant))
