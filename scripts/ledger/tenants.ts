import { Command } from 'commander'
import { changeTenantStatus } from '../../src/commands/tenantStatus.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { Unavailable } from '../../src/ports.ts'
import { isScope, SCOPES } from '../../src/identity/principal.ts'
import type { TenantCommand, TenantState } from '../../streams/tenant/index.ts'
import { checkedTenant, operatorContext } from './operatorContext.ts'
import { jsonOption, print, printJson } from './print.ts'
import { findConnections } from './connections.ts'
import { withLedger, withStores } from './stores.ts'
import { aligned } from './table.ts'
import { allStatuses, decidedStatuses, hasData, type TenantStatus } from './tenantStatuses.ts'

type Options = { readonly reason: string; readonly json: boolean }
type SuspendOptions = Options & { readonly force: boolean }
type RightOptions = Options & { readonly subject: string; readonly scope: string }

const changeTenant = async (name: string, command: TenantCommand, { json }: Options): Promise<void> => {
  const tenant = checkedTenant(name)
  const state = await withLedger(ledger => changeTenantStatus(ledger, command, operatorContext(tenant)))
  if (json) printJson({ tenant, ...viewOf(state) })
  else print(sentenceOf(tenant, state))
}

/** A misspelt name would otherwise be suspended without a word, and the tenant that was meant would go on. */
const refuseUnknown = async (given: string): Promise<void> => {
  const tenant = checkedTenant(given)
  const { event_store, postgres } = (await findConnections()).addresses
  if (event_store !== null && postgres === null)
    throw new StartupError('The tenants are known to Postgres: set DATABASE_URL, or use --force.')
  if (await isKnown(tenant)) return
  throw new StartupError(
    `There is no tenant named ${tenant}. To see all, run npm run -s ledger -- tenants list; ` +
      'to suspend one before it exists, add --force.',
  )
}

const isKnown = (tenant: string): Promise<boolean> =>
  withStores('tenants', async ({ ledger, database }) => {
    try {
      return (await hasData(database, tenant)) || (await decidedStatuses(ledger.store)).has(tenant)
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
      throw new StartupError(`Whether there is a tenant ${tenant} cannot be checked now: use --force. ${error.message}`)
    }
  })

const suspend = async (tenant: string, options: SuspendOptions): Promise<void> => {
  if (!options.force) await refuseUnknown(tenant)
  await changeTenant(tenant, { type: 'SuspendTenant', reason: options.reason }, options)
}

const list = async ({ json }: Pick<Options, 'json'>): Promise<void> => {
  const statuses = await withStores('tenants', ({ ledger, database }) => allStatuses(ledger.store, database))
  if (json)
    return printJson({
      items: statuses.map(({ state, ...status }) => ({ ...status, ...viewOf(state), last: status.last ?? null })),
    })
  for (const line of aligned(statuses.map(cellsOf))) print(line)
  if (statuses.length === 0) print('There is no tenant yet.')
}

const cellsOf = ({ tenant, stream, state, last }: TenantStatus): readonly string[] => {
  const [, ...withdrawn] = sentenceOf(tenant, state).split('; ')
  const why = last === undefined ? '' : `since ${last.at}, by ${last.by}: ${last.reason}`
  return [tenant, state.isSuspended ? 'suspended' : 'active', stream, [why, ...withdrawn].filter(Boolean).join('; ')]
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
  throw new StartupError(`There is no scope ${JSON.stringify(scope)}. The scopes are ${SCOPES.join(', ')}.`)
}

const subcommand = (name: string, description: string): Command =>
  new Command(name)
    .description(description)
    .argument('<tenant>', 'the name of the tenant, as in its tokens: acme')
    .requiredOption('--reason <text>', 'the reason, which is recorded')
    .addOption(jsonOption('print JSON, the new status: {tenant, suspended, revoked: [{subject, scope}]}'))
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
The command is an audit record of the tenant (GET /audit-records) with the reason; its subject is the user of the
operating system. The history is in the stream that tenants list prints: streams show <stream>.

Examples:
  npm run -s ledger -- tenants list
  npm run -s ledger -- tenants suspend acme --reason "invoice 4711 is overdue"
  npm run -s ledger -- tenants reinstate acme --reason "paid"
  npm run -s ledger -- tenants revoke-scope acme --subject ann --scope payments:write --reason "left the company"
  npm run -s ledger -- tenants restore-scope acme --subject ann --scope payments:write --reason "came back"`

export const tenantsCommand = new Command('tenants')
  .description('Lists, suspends and reinstates tenants; revokes and restores scopes of one subject of a tenant.')
  .addCommand(
    new Command('list')
      .description('Lists the tenants that have data or were decided about: name, status, stream, last decision.')
      .addOption(
        jsonOption('print JSON: {items: [{tenant, stream, suspended, revoked, last: {at, by, reason} | null}]}'),
      )
      .action(list),
  )
  .addCommand(
    subcommand(
      'suspend',
      'Refuses all requests of the tenant (403), ends its event streams, and stops its subscriptions.',
    )
      .option('--force', 'also a tenant that the ledger does not know, as in advance', false)
      .action(suspend),
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
