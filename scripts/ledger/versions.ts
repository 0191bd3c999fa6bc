import { Command } from 'commander'
import { openDatabase } from '../../src/adapters/postgres/database.ts'
import { changeRetirement, type Operation, retiredVersions } from '../../src/http/versions/apiVersionRetirement.ts'
import { apiVersionUsage, type Usage } from '../../src/http/versions/apiVersionUsage.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import { isVersion, NEWEST_VERSION, type Version, VERSIONS } from '../../src/http/versions/index.ts'
import { pageOf, type Release, RELEASES, successorOf } from '../../src/http/versions/releases.ts'
import type { Database, Sql } from '../../src/ports.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { SYSTEM_TENANT } from '../../streams/envelope.ts'
import { findConnections, howToStart } from './connections.ts'
import { operatorContext, withLedger } from './operatorContext.ts'
import { print, printJson } from './print.ts'
import { aligned } from './table.ts'

/** `versions`: the API versions with their states and their remaining traffic; retirement of a version. */

const USAGE_DAYS = 30
const ROWS_SHOWN = 20
const CLIENTS_NAMED = 3

type Options = { readonly json: boolean }
type RetireOptions = Options & { readonly force: boolean }

type State = 'current' | 'supported' | 'deprecated' | 'retired'

const stateOf = (version: Version, retired: ReadonlySet<string>): State => {
  const { deprecation }: Release = RELEASES[version]
  if (retired.has(version)) return 'retired'
  if (version === NEWEST_VERSION) return 'current'
  return deprecation && Date.parse(deprecation.date) <= realWorld().now() ? 'deprecated' : 'supported'
}

const viewOf = (version: Version, retired: ReadonlySet<string>, usage: readonly Usage[]) => {
  const { owner, deprecation }: Release = RELEASES[version]
  const successor = successorOf(version)
  const requests = usage.filter(row => row.version === version).map(({ version: _, ...counted }) => counted)
  return {
    version,
    state: stateOf(version, retired),
    deprecated: deprecation?.date ?? null,
    sunset: deprecation?.sunset ?? null,
    owner,
    guide: successor ? pageOf(successor) : null,
    requests_30_days: requests.reduce((sum, row) => sum + row.requests, 0),
    requests,
  }
}
type View = ReturnType<typeof viewOf>

const readViews = async (sql: Sql): Promise<View[]> => {
  const [retired, usage] = await Promise.all([retiredVersions(sql), apiVersionUsage(sql, USAGE_DAYS)])
  return VERSIONS.map(version => viewOf(version, retired, usage))
}

const withDatabase = async <T>(work: (database: Database) => Promise<T>): Promise<T> => {
  const { config, addresses } = await findConnections()
  if (addresses.postgres === null) throw new StartupError(howToStart(config.dataDir))
  const database = openDatabase({ connectionString: addresses.postgres, applicationName: 'ledger-versions' })
  try {
    return await work(database)
  } finally {
    await database.close()
  }
}

const printViews = (views: readonly View[]): void => {
  const rows = views.map(view => [
    view.version,
    view.state,
    view.deprecated ?? '-',
    view.sunset ?? '-',
    view.owner,
    String(view.requests_30_days),
  ])
  for (const line of aligned([['version', 'state', 'deprecated', 'sunset', 'owner', 'requests'], ...rows])) print(line)
  for (const { version, requests } of views.filter(view => view.requests.length > 0)) {
    print()
    const shown = requests.slice(0, ROWS_SHOWN)
    const counted = shown.map(row => [row.route, row.tenant_id, row.client, String(row.requests)])
    for (const line of aligned([[`${version}: route`, 'tenant', 'client', 'requests'], ...counted])) print(line)
    if (shown.length < requests.length) print(`… and ${requests.length - shown.length} more (--json has all)`)
  }
}

const list = async ({ json }: Options): Promise<void> => {
  const views = await withDatabase(({ sql }) => readViews(sql))
  if (json) printJson({ versions: views })
  else printViews(views)
}

const checkedVersion = (version: string): Version => {
  if (!isVersion(version)) throw new StartupError(`There is no version ${version}: there are ${VERSIONS.join(', ')}.`)
  if (version === NEWEST_VERSION) throw new StartupError(`${version} is the newest version, which is always served.`)
  return version
}

/** The reason not to retire the version yet; undefined if there is none. */
const objectionTo = ({ version, sunset, requests, requests_30_days }: View): string | undefined => {
  if (requests_30_days > 0) {
    const clients = [...new Set(requests.map(({ tenant_id, client }) => `${client} of ${tenant_id}`))]
    const named = clients.slice(0, CLIENTS_NAMED).join(', ') + (clients.length > CLIENTS_NAMED ? ', …' : '')
    return `${version} had ${requests_30_days} requests in the last ${USAGE_DAYS} days, from ${named}.`
  }
  if (sunset === null) return `${version} is not deprecated: no response has announced its end to clients.`
  return Date.parse(sunset) > realWorld().now() ? `${version} was promised until ${sunset}.` : undefined
}

const change = async (version: Version, operation: Operation, { json }: Options): Promise<void> => {
  const { config, addresses } = await findConnections()
  if (addresses.event_store === null) throw new StartupError(howToStart(config.dataDir))
  await withLedger(addresses.event_store, ledger =>
    withDatabase(async database => {
      await changeRetirement({ ledger, database }, { version, operation }, operatorContext(SYSTEM_TENANT))
      const view = (await readViews(database.sql)).find(other => other.version === version)
      if (json) printJson(view)
      else print(`${version} is ${view?.state} on every instance within 5 seconds.`)
    }),
  )
}

const retire = async (text: string, options: RetireOptions): Promise<void> => {
  const version = checkedVersion(text)
  const view = (await withDatabase(({ sql }) => readViews(sql))).find(other => other.version === version)
  const objection = view && view.state !== 'retired' ? objectionTo(view) : undefined
  if (objection !== undefined && !options.force)
    throw new StartupError(`${objection} It was not retired; --force retires it anyway.`)
  await change(version, objection === undefined ? 'retire_api_version' : 'force_retire_api_version', options)
}

const EFFECT = `
Requests of a retired version are refused with 410 version_retired, and requests without API-Version are answered by the
oldest version that is left. Counted are requests of identified callers; an instance adds its counts every 5 seconds.
Each change is an audit record of the tenant "${SYSTEM_TENANT}" whose subject is the user of the operating system.

Examples:
  npm run -s ledger -- versions --json
  npm run -s ledger -- versions retire ${VERSIONS[0]}
  npm run -s ledger -- versions restore ${VERSIONS[0]}`

const JSON_OPTION = ['--json', 'print JSON', false] as const

export const versionsCommand = new Command('versions')
  .description(`Lists the API versions, with the requests of the last ${USAGE_DAYS} days by route and client.`)
  .option(...JSON_OPTION)
  .action(list)
  .addCommand(
    new Command('retire')
      .description('Switches a version off. Refused while it has traffic, or before its announced end.')
      .argument('<version>', 'the date of the version')
      .option('--force', 'retire it anyway, which breaks its clients', false)
      .option(...JSON_OPTION)
      .action(retire),
  )
  .addCommand(
    new Command('restore')
      .description('Switches a retired version on again.')
      .argument('<version>', 'the date of the version')
      .option(...JSON_OPTION)
      .action((version: string, options: Options) => change(checkedVersion(version), 'restore_api_version', options)),
  )
  // Otherwise --json after `retire` would be the option of `versions`.
  .enablePositionalOptions()
  .addHelpText('after', EFFECT)
