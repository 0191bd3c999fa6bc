import { Command } from 'commander'
import { changeTenantStatus } from '../../src/commands/tenantStatus.ts'
import { StartupError } from '../../src/startupError.ts'
import { isScope, TENANT_PATTERN } from '../../src/identity/principal.ts'
import type { TenantCommand, TenantState } from '../../streams/tenant/index.ts'
import { operatorContext, withLedger } from './operatorContext.ts'
import { print, printJson } from './print.ts'
import { findConnections, howToStart } from './connections.ts'

/** `tenants`: suspension of tenants and revocation of scopes by the operator. */

type Options = { readonly reason: string; readonly json: boolean }
type RightOptions = Options & { readonly subject: string; readonly scope: string }

const changeTenant = async (tenant: string, command: TenantCommand, { json }: Options): Promise<void> => {
  if (!TENANT_PATTERN.test(tenant))
    throw new StartupError('A tenant is 1 to 63 of a-z, 0-9 and -, not beginning with -.')
  const { config, addresses } = await findConnections()
  if (addresses.event_store === null) throw new StartupError(howToStart(config.dataDir))
  const state = await withLedger(addresses.event_store, ledger =>
    changeTenantStatus(ledger, command, operatorContext(tenant)),
  )
  if (json) printJson({ tenant, ...viewOf(state) })
  else print(sentenceOf(tenant, state))
}

const viewOf = ({ isSuspended, revoked }: TenantState) => ({
  suspended: isSuspended,
  revoked: [...revoked].flatMap(([subject, scopes]) => [...scopes].map(scope => ({ subject, scope }))),
})

const sentenceOf = (tenant: string, state: TenantState): string => {
  const { suspended, revoked } = viewOf(state)
  const taken = revoked.map(({ subject, scope }) => `${subject} has lost ${scope}`)
  return [`${tenant} is ${suspended ? 'suspended' : 'in good standing'}`, ...taken].join('; ')
}

const checkedScope = (scope: string): string => {
  if (isScope(scope)) return scope
  throw new StartupError(`There is no scope ${JSON.stringify(scope)}.`)
}

const subcommand = (name: string, description: string): Command =>
  new Command(name)
    .description(description)
    .argument('<tenant>')
    .requiredOption('--reason <words>', 'why, for the auditors')
    .option('--json', 'one JSON document: {tenant, suspended, revoked: [{subject, scope}]}', false)
const ofSubject = (name: string, description: string): Command =>
  subcommand(name, description)
    .requiredOption('--subject <subject>', 'whose')
    .requiredOption('--scope <scope>', 'which')

const changeScope =
  (type: 'RevokeScope' | 'RestoreScope') =>
  (tenant: string, options: RightOptions): Promise<void> => {
    const { subject, reason, scope } = options
    return changeTenant(tenant, { type, subject, scope: checkedScope(scope), reason }, options)
  }

export const tenantsCommand = new Command('tenants')
  .description('Suspends tenants and takes scopes from subjects, whatever their credentials say.')
  .addCommand(
    subcommand('suspend', 'Nobody of the tenant may do anything; streams and subscriptions of it end.').action(
      (tenant: string, options: Options) =>
        changeTenant(tenant, { type: 'SuspendTenant', reason: options.reason }, options),
    ),
  )
  .addCommand(
    subcommand('reinstate', 'Takes the suspension back.').action((tenant: string, options: Options) =>
      changeTenant(tenant, { type: 'ReinstateTenant', reason: options.reason }, options),
    ),
  )
  .addCommand(
    ofSubject('revoke-scope', 'The subject may no longer do what the scope permits.').action(
      changeScope('RevokeScope'),
    ),
  )
  .addCommand(ofSubject('restore-scope', 'Gives back what was revoked.').action(changeScope('RestoreScope')))
  .addHelpText(
    'after',
    '\nCounts on every instance within 5 seconds, for streams of events and subscriptions too. Saying it twice is saying it\n' +
      'once. It is on record at GET /audit-records, with the reason in the stream of the tenant.',
  )
