import { expect } from 'chai'
import { openDatabase } from '../../src/adapters/postgres/database.ts'
import { compose, type Service } from '../../src/compose/service.ts'
import { readConfig } from '../../src/settings/config.ts'
import { mintDevToken } from '../../src/embedded/issuer/devToken.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { SCOPES } from '../../src/identity/principal.ts'
import { NODE, startTestNode, type TestNode } from '../embedded/eventStoreNode.ts'
import { eventually } from '../support/eventually.ts'
import { run } from '../scripts/cli.ts'
import { retryingFetch } from '../support/client.ts'
import { temporaryDirectory } from '../support/service.ts'
import { removeFolder } from '../support/folders.ts'
import { startChild, type TestChild } from '../embedded/childProcesses.ts'

const ORDER = { currency: 'USD', lines: [{ sku: 'tea', quantity: 2, unit_amount: 450 }] }

describe('a service on the tables of another log', () => {
  let first: TestNode
  let dataDir: string
  let second: TestChild
  let service: Service | undefined

  const databaseNamed = (name: string): string => {
    const url = new URL(first.databaseUrl)
    url.pathname = `/${name}`
    return url.href
  }
  const startNode = (name: string, firstPort = 0): Promise<TestChild> =>
    startChild({
      name: 'eventstore',
      module: NODE,
      port: firstPort,
      args: port => ['--database-url', databaseNamed(name), '--port', port],
    })
  const settings = (store: string) => ({
    PORT: '0',
    LEDGER_DATA_DIR: dataDir,
    EVENTSTORE_URL: store,
    DATABASE_URL: databaseNamed('tables'),
  })
  const start = async (store: string): Promise<Service> => (service = await compose(readConfig(settings(store))))
  const refusalOf = (store: string): Promise<unknown> =>
    start(store).then(
      () => undefined,
      (error: unknown) => error,
    )
  const call = async ({ addresses }: Service, method: string, body?: object) => {
    const who = { tenant: 'acme', subject: 'tester', scopes: SCOPES, user: false }
    const token = await mintDevToken({ dataDir, issuer: addresses.issuer, audience: 'payment-ledger', ...who })
    return retryingFetch(`${addresses.api}/orders`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
  }
  const countOf = async (running: Service): Promise<number> =>
    ((await (await call(running, 'GET')).json()) as { items: unknown[] }).items.length
  const reset = (...args: string[]) =>
    run('ledger.ts', ['projections', 'reset', ...args], {
      LEDGER_DATA_DIR: dataDir,
      DATABASE_URL: databaseNamed('tables'),
    })

  before(async () => {
    first = await startTestNode()
    dataDir = await temporaryDirectory()
    const admin = openDatabase({ connectionString: first.databaseUrl, poolMax: 1, statementTimeoutMs: 60_000 })
    for (const name of ['tables', 'second', 'third']) await admin.sql(`create database ${name}`)
    await admin.close()
    second = await startNode('second')
    const running = await start(first.address)
    expect((await call(running, 'POST', ORDER)).status).to.equal(201)
    await eventually(async () => (await countOf(running)) === 1)
    await running.close()
  })
  after(async () => {
    await service?.close()
    await second.stop()
    await first.stop()
    await removeFolder(dataDir)
  })

  it('does not start; the error names both logs and the command that rebuilds the tables', async () => {
    const refusal = await refusalOf(second.address)
    expect(refusal).to.be.instanceOf(StartupError)
    expect(refusal)
      .to.have.property('message')
      .that.matches(/of the log [0-9a-f-]{36}; the log of the event store is .*projections reset --to-this-log/)
    service = undefined
  })

  it('starts after a rebuild of the tables, which needs a confirmation and no running service', async () => {
    expect((await reset()).code).to.equal(2)
    const running = await start(first.address)
    const refused = await reset('--to-this-log')
    expect(refused.code).to.equal(2)
    expect(refused.stderr).to.match(/A service runs on this database/)
    await running.close()
    const done = await reset('--to-this-log')
    expect([done.code, done.stderr]).to.deep.equal([0, ''])
    const other = await start(second.address)
    expect(await countOf(other)).to.equal(0)
    expect((await call(other, 'POST', ORDER)).status).to.equal(201)
    await eventually(async () => (await countOf(other)) === 1)
  })

  it('ends when its store gets another log while it runs', async () => {
    if (service === undefined) return expect.fail('no service runs')
    const { port } = new URL(second.address)
    await second.stop()
    second = await startNode('third', Number(port))
    expect((await service.failed).message).to.match(/^The tables in Postgres are of the log/)
  })
})
