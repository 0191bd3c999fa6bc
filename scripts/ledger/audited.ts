import type { Ledger } from '../../src/commands/commandHandler.ts'
import { recordAuditedDecision } from '../../src/commands/recordAuditedDecision.ts'
import { operatorContext } from './operatorContext.ts'

/** Looks at audit data from the command line are audit records themselves, stored before anything is shown. */

/** `tenant`: that of the data; `ledger` for all tenants. */
export const recordLook = (
  ledger: Ledger,
  {
    operation,
    tenant,
    resource,
  }: { readonly operation: string; readonly tenant: string; readonly resource: string | null },
): Promise<void> => recordAuditedDecision(ledger, { type: 'GrantAccess', operation, resource }, operatorContext(tenant))
