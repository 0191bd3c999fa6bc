import { Command } from 'commander'
import { changeRetirement, type Operation, retiredVersions } from '../../src/http/versions/apiVersionRetirement.ts'
import { apiVersionUsage, type Usage } from '../../src/http/versions/apiVersionUsage.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import { isVersion, NEWEST_VERSION, type Version, VERSIONS } from '../../src/http/versions/index.ts'
import { pageOf, type Release, RELEASES, successorOf } from '../../src/http/versions/releases.ts'
import type { Sql } from '../../src/ports.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { SYSTEM_TENANT } from '../../streams/envelope.ts'
import { operatorContext } from './operatorContext.ts'
import { jsonCommand, jsonOption, print, printJson } from './print.ts'
import { withDatabase, withStores } from './stores.ts'
import { printTable } from './table.ts'

const USAGE_DAYS = 30
const ROWS_SHOWN = 20
const CLIENTS_NAMED = 3

type Options = { readonly json: boolean }
type RetireOptions = Options & { readonly force: boolean }

const stateOf = (version: Version, retired: ReadonlySet<string>) => {
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

const readViews = async ({ sql }: { readonly sql: Sql }): Promise<View[]> => {
  const [retired, usage] = await Promise.all([retiredVersions(sql), apiVersionUsage(sql, USAGE_DAYS)])
  return VERSIONS.map(version => viewOf(version, retired, usage))
}

const printViews = (views: readonly View[]): void => {
  const rows = views.map(({ version, state, deprecated, sunset, owner, requests_30_days }) => [
    version,
    state,
    deprecated ?? '-',
    sunset ?? '-',
    owner,
    requests_30_days,
  ])
  printTable([['version', 'state', 'deprecated', 'sunset', 'owner', 'requests'], ...rows])
  for (const { version, requests } of views.filter(view => view.requests.length > 0)) {
    print()
    const shown = requests.slice(0, ROWS_SHOWN)
    const counted = shown.map(row => [row.route, row.tenant_id, row.client, row.requests])
    printTable([[`${version}: route`, 'tenant', 'client', 'requests'], ...counted])
    if (shown.length < requests.length) print(`… and ${requests.length - shown.length} more (--json has all)`)
  }
}

const list = async ({ json }: Options): Promise<void> => {
  const views = await withDatabase('versions', readViews)
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

const change = (version: Version, operation: Operation, { json }: Options): Promise<void> =>
  withStores('versions', async ({ ledger, database }) => {
    await changeRetirement({ ledger, database }, { version, operation }, operatorContext(SYSTEM_TENANT))
    const view = (await readViews(database)).find(other => other.version === version)
    if (json) printJson(view)
    else print(`${version} is ${view?.state} on every instance within 5 seconds.`)
  })

const retire = async (text: string, options: RetireOptions): Promise<void> => {
  const version = checkedVersion(text)
  const view = (await withDatabase('versions', readViews)).find(other => other.version === version)
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

export const versionsCommand = jsonCommand(
  'versions',
  `Lists the API versions, with the requests of the last ${USAGE_DAYS} days by route and client.`,
)
  .action(list)
  .addCommand(
    new Command('retire')
      .description('Switches a version off. Refused while it has traffic, or before its announced end.')
      .argument('<version>', 'the date of the version')
      .option('--force', 'retire it anyway, which breaks its clients', false)
      .addOption(jsonOption())
      .action(retire),
  )
  .addCommand(
    jsonCommand('restore', 'Switches a retired version on again.')
      .argument('<version>', 'the date of the version')
      .action((version: string, options: Options) => change(checkedVersion(version), 'restore_api_version', options)),
  )
  // Otherwise --json after `retire` would be the option of `versions`.
  .enablePositionalOptions()
  .addHelpText('after', EFFECT)
