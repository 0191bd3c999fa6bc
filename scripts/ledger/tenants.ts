import { Command } from 'commander'
import { changeTenantStatus } from '../../src/commands/tenantStatus.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { isScope } from '../../src/identity/principal.ts'
import type { TenantCommand, TenantState } from '../../streams/tenant/index.ts'
import { checkedTenant, operatorContext, withLedger } from './operatorContext.ts'
import { print, printJson } from './print.ts'
import { findConnections, howToStart } from './connections.ts'

/** `tenants`: suspension of tenants and revocation of scopes by the operator. */

type Options = { readonly reason: string; readonly json: boolean }
type RightOptions = Options & { readonly subject: string; readonly scope: string }

const changeTenant = async (name: string, command: TenantCommand, { json }: Options): Promise<void> => {
  const tenant = checkedTenant(name)
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
  const withdrawn = revoked.map(({ subject, scope }) => `${subject} has ${scope} revoked`)
  return [`${tenant} is ${suspended ? 'suspended' : 'not suspended'}`, ...withdrawn].join('; ')
}

const checkedScope = (scope: string): string => {
  if (isScope(scope)) return scope
  throw new StartupError(`There is no scope ${JSON.stringify(scope)}.`)
}

const subcommand = (name: string, description: string): Command =>
  new Command(name)
    .description(description)
    .argument('<tenant>', 'the name of the tenant, as in its tokens: acme')
    .requiredOption('--reason <text>', 'the reason, which is recorded')
    .option('--json', 'print JSON, the new status: {tenant, suspended, revoked: [{subject, scope}]}', false)
const ofSubject = (name: string, description: string): Command =>
  subcommand(name, description)
    .requiredOption('--subject <subject>', 'the user or workload, as in the claim sub of its tokens')
    .requiredOption('--scope <scope>', 'one scope, such as payments:write')

const changeScope =
  (type: 'RevokeScope' | 'RestoreScope') =>
  (tenant: string, options: RightOptions): Promise<void> => {
    const { subject, reason, scope } = options
    return changeTenant(tenant, { type, subject, scope: checkedScope(scope), reason }, options)
  }

const EFFECT = `
Effective on every instance within 5 seconds, for any credential: access tokens, also valid ones, and API keys.
A repeated command changes nothing. Each prints the tenant's new status. The event store must run: the
embedded one runs with the service, another is named by EVENTSTORE_URL.
The command is an audit record (GET /audit-records) whose subject is the user of the operating system.

Examples:
  npm run -s ledger -- tenants suspend acme --reason "invoice 4711 is overdue"
  npm run -s ledger -- tenants reinstate acme --reason "paid"
  npm run -s ledger -- tenants revoke-scope acme --subject ann --scope payments:write --reason "left the company"
  npm run -s ledger -- tenants restore-scope acme --subject ann --scope payments:write --reason "came back"`

export const tenantsCommand = new Command('tenants')
  .description('Suspends and reinstates tenants; revokes and restores scopes of one subject of a tenant.')
  .addCommand(
    subcommand(
      'suspend',
      'Refuses all requests of the tenant (403), ends its event streams, and stops its subscriptions.',
    ).action((tenant: string, options: Options) =>
      changeTenant(tenant, { type: 'SuspendTenant', reason: options.reason }, options),
    ),
  )
  .addCommand(
    subcommand(
      'reinstate',
      'Ends the suspension. Stopped subscriptions continue after `ledger subscriptions resume`.',
    ).action((tenant: string, options: Options) =>
      changeTenant(tenant, { type: 'ReinstateTenant', reason: options.reason }, options),
    ),
  )
  .addCommand(
    ofSubject(
      'revoke-scope',
      'Removes a scope from all credentials of a subject, and stops its subscriptions that need the scope.',
    ).action(changeScope('RevokeScope')),
  )
  .addCommand(
    ofSubject('restore-scope', 'Ends the revocation: the scope counts again where a credential has it.').action(
      changeScope('RestoreScope'),
    ),
  )
  .addHelpText('after', EFFECT)
