import { userInfo } from 'node:os'
import { expect } from 'chai'
import { openDatabase } from '../../../src/adapters/postgres/database.ts'
import { realWorld } from '../../../src/lib/clockAndRandomness.ts'
import { createApiVersionUsage } from '../../../src/http/versions/apiVersionUsage.ts'
import { createLedgerTables } from '../../../src/feeds/ledgerTables.ts'
import { followRetiredVersions, type ServedVersions } from '../../../src/http/versions/servedVersions.ts'
import { NEWEST_VERSION, OLDEST_VERSION } from '../../../src/http/versions/index.ts'
import type { Database } from '../../../src/ports.ts'
import { clientOf } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { newDatabase } from '../../support/postgres.ts'
import { sharedService, type TestService } from '../../support/service.ts'
import { folderWith, ledger, tidyUp } from './fixtures.ts'

type Listed = {
  readonly version: string
  readonly state: string
  readonly owner: string
  readonly requests_30_days: number
  readonly requests: readonly { route: string; tenant_id: string; client: string; requests: number }[]
}

const versionsOf = ({ stdout }: { readonly stdout: string }): readonly Listed[] => JSON.parse(stdout).versions

describe('npm run ledger -- versions', () => {
  let service: TestService
  let database: Database
  /** The shared event store with another database, so that a retirement here does not concern other tests. */
  let dataDir: string
  const instances: ServedVersions[] = []
  const failed = (error: unknown): never => {
    throw error
  }
  before(async () => {
    service = await sharedService()
    const postgres = await newDatabase()
    database = openDatabase({ connectionString: postgres })
    await createLedgerTables(database)
    dataDir = await folderWith({ postgres })
    for (let count = 0; count < 2; count++)
      instances.push(await followRetiredVersions({ database, world: realWorld(), onFailure: failed }))
  })
  after(async () => {
    await Promise.all(instances.map(one => one.close()))
    await database.close()
    await tidyUp()
  })

  const versions = (...args: readonly string[]) => ledger(['versions', ...args], dataDir)
  const refusals = () => instances.map(one => one.resolveVersion(OLDEST_VERSION).refusal)
  const refusedOn = (expected: string | undefined) => eventually(async () => refusals().every(one => one === expected))

  it('lists the requests that a service answered, by version, route and client', async () => {
    const client = clientOf(service.api, await service.token({ tenant: 'counted' }))
    for (const headers of [{}, { 'api-version': NEWEST_VERSION }, { 'api-version': '1999-01-01' }])
      await client.get('/orders?limit=1', headers)
    await client.get('/orders/ord_00000000000000000000000000')
    await clientOf(service.api).get('/livez')
    const own = (listed: readonly Listed[]) =>
      listed.map(({ version, requests }) => [
        version,
        requests.filter(one => one.tenant_id === 'counted').map(one => `${one.requests} ${one.route}`),
      ])
    const listed = await eventually(async () => {
      const actual = versionsOf(await ledger(['versions', '--json']))
      return actual.every(({ requests }) => requests.some(one => one.tenant_id === 'counted')) && actual
    })
    expect(own(listed)).to.deep.equal([
      [OLDEST_VERSION, ['1 GET /orders', '1 GET /orders/{id}']],
      [NEWEST_VERSION, ['1 GET /orders']],
    ])
    expect(listed.flatMap(({ requests }) => requests).some(({ route }) => route === 'GET /livez')).to.equal(false)
  })

  it('shows state and owner, and an empty table without traffic', async () => {
    const { code, stdout } = await versions()
    expect(code).to.equal(0)
    expect(stdout).to.match(/^version +state +deprecated +sunset +owner +requests\n/)
    expect(stdout).to.match(new RegExp(`^${OLDEST_VERSION} +supported +- +- +API team +0$`, 'm'))
    expect(stdout).to.match(new RegExp(`^${NEWEST_VERSION} +current `, 'm'))
  })

  it('does not retire a version that has traffic, or whose end was not announced, unless forced', async () => {
    const unannounced = await versions('retire', OLDEST_VERSION)
    expect([unannounced.code, unannounced.stderr]).to.deep.equal([
      2,
      `${OLDEST_VERSION} is not deprecated: no response has announced its end to clients. It was not retired; ` +
        '--force retires it anyway.\n',
    ])
    const usage = createApiVersionUsage({ database, world: realWorld(), onFailure: failed })
    usage.count(OLDEST_VERSION, 'GET /orders', { tenant: 'acme', client: 'old shop' })
    await usage.close()
    const used = await versions('retire', OLDEST_VERSION)
    expect([used.code, used.stdout]).to.deep.equal([2, ''])
    expect(used.stderr).to.include('had 1 requests in the last 30 days, from old shop of acme.')
    expect(refusals()).to.deep.equal([undefined, undefined])
  })

  it('retires a version on all instances, and restores it, with audit records', async () => {
    const forced = await versions('retire', OLDEST_VERSION, '--force', '--json')
    expect(JSON.parse(forced.stdout)).to.include({ version: OLDEST_VERSION, state: 'retired' })
    await refusedOn('version_retired')
    expect(instances[0]?.resolveVersion(undefined)).to.deep.equal({ version: NEWEST_VERSION })
    expect((await versions('retire', OLDEST_VERSION)).code, 'a second time').to.equal(0)
    const restored = await versions('restore', OLDEST_VERSION)
    expect(restored.stdout).to.equal(`${OLDEST_VERSION} is supported on every instance within 5 seconds.\n`)
    await refusedOn(undefined)
    const audited = openDatabase({ connectionString: service.addresses.postgres })
    for (const operation of ['force_retire_api_version', 'restore_api_version']) {
      const find = () =>
        audited.sql(`select * from audit_v2 where tenant_id = 'ledger' and operation = $1`, [operation])
      const record = await eventually(async () => (await find())[0])
      expect(record).to.include({ decision: 'granted', resource: OLDEST_VERSION, subject: userInfo().username })
    }
    await audited.close()
  })

  it('never retires the newest version, or one that does not exist', async () => {
    for (const [version, complaint] of [
      [NEWEST_VERSION, 'is the newest version'],
      ['2026-11-02', 'There is no version 2026-11-02'],
    ] as const) {
      const { code, stderr } = await versions('retire', version, '--force')
      expect(code).to.equal(2)
      expect(stderr).to.include(complaint)
    }
  })
})
