import { status } from '@grpc/grpc-js'
import { expect } from 'chai'
import { readAddresses } from '../../src/compose/addressesFile.ts'
import { openDatabase } from '../../src/adapters/postgres/database.ts'
import { compose, type Service } from '../../src/compose/service.ts'
import { readConfig } from '../../src/settings/config.ts'
import { holdPort } from '../../src/embedded/freePorts.ts'
import { mintDevToken } from '../../src/embedded/issuer/devToken.ts'
import { SCOPES } from '../../src/identity/principal.ts'
import { type ScriptedStore, startScriptedStore } from '../adapters/eventstoredbWire.ts'
import { NODE, startTestNode, type TestNode } from '../embedded/eventStoreNode.ts'
import { eventually } from '../support/eventually.ts'
import { healthCheckOfImage } from '../support/imageHealthCheck.ts'
import { run } from '../scripts/cli.ts'
import { retryingFetch } from '../support/client.ts'
import { type RefusingStore, startRefusingStore } from '../support/refusingStore.ts'
import { temporaryDirectory } from '../support/service.ts'
import { removeFolder } from '../support/folders.ts'
import { startChild, type TestChild } from '../embedded/childProcesses.ts'

const ORDER = { currency: 'USD', lines: [{ sku: 'tea', quantity: 2, unit_amount: 450 }] }

const post = async (dataDir: string): Promise<{ status: number; code: string }> => {
  const addresses = await readAddresses(dataDir)
  if (addresses === undefined) throw new Error('No addresses.')
  const who = { tenant: 'acme', subject: 'tester', scopes: SCOPES, user: false }
  const token = await mintDevToken({ dataDir, issuer: addresses.issuer, audience: 'payment-ledger', ...who })
  const answer = await retryingFetch(`${addresses.api}/orders`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(ORDER),
  })
  const { code = '' } = (await answer.json()) as { code?: string }
  return { status: answer.status, code }
}

describe('a service whose event store refuses it', () => {
  let dataDir: string
  let refusing: RefusingStore
  let starting: Promise<Service>
  let isReady = false
  let node: TestChild | undefined
  const reasons: string[] = []
  const ending = new AbortController()

  before(async () => {
    dataDir = await temporaryDirectory()
    refusing = await startRefusingStore({ code: status.UNAUTHENTICATED, details: 'Unauthenticated' })
    const EVENTSTORE_URL = `esdb://127.0.0.1:${refusing.port}?tls=false`
    const config = readConfig({ PORT: '0', LEDGER_DATA_DIR: dataDir, EVENTSTORE_URL })
    starting = compose(config, {
      signal: ending.signal,
      onWaiting: reason => reasons.push(reason),
      onOutage: () => undefined,
    })
    starting.then(
      () => (isReady = true),
      () => undefined,
    )
    await eventually(() => reasons.some(reason => reason.includes('): ')))
  })
  after(async () => {
    ending.abort()
    await (await starting.catch(() => undefined))?.close()
    await refusing.stop()
    await node?.stop()
    await removeFolder(dataDir)
  })

  it('is not ready, and responds to a command with 503 without effect', async () => {
    expect(isReady).to.equal(false)
    expect(reasons.at(-1)).to.match(
      /^Waiting for the event store at 127\.0\.0\.1:\d+ \(EVENTSTORE_URL\): The event store refuses the user name or the password in EVENTSTORE_URL\..* Correct the user and the password in EVENTSTORE_URL\.$/,
    )
    expect(await post(dataDir)).to.deep.equal({ status: 503, code: 'dependency_unavailable' })
    const addresses = await readAddresses(dataDir)
    expect((await fetch(`${addresses?.api}/readyz`)).status).to.equal(503)
    expect((await fetch(`${addresses?.api}/readyz?for=traffic`)).status).to.equal(200)
    expect(await healthCheckOfImage(new URL(addresses?.api ?? '').port)).to.equal(0)
    const { port, release } = await holdPort(0, '127.0.0.1')
    await release()
    expect(await healthCheckOfImage(String(port))).to.equal(1)
  })

  it('reports the reason to the operator', async () => {
    const ended = await run('ledger.ts', ['doctor', '--json'], { LEDGER_DATA_DIR: dataDir })
    expect(ended.code).to.equal(1)
    expect(ended.stdout).to.include('The event store refuses the user name or the password')
  })

  it('is ready after the repair, and its feeds continue', async () => {
    const addresses = await readAddresses(dataDir)
    const postgres = new URL(addresses?.postgres ?? '')
    const database = openDatabase({ connectionString: postgres.href, poolMax: 1, statementTimeoutMs: 60_000 })
    await database.sql('create database refused_store')
    await database.close()
    postgres.pathname = '/refused_store'
    await refusing.stop()
    const args = (port: string): readonly string[] => ['--database-url', postgres.href, '--port', port]
    node = await startChild({ name: 'eventstore', module: NODE, port: refusing.port, args })
    const service = await starting
    expect((await post(dataDir)).status).to.equal(201)
    const ready = async (): Promise<boolean> => (await fetch(`${service.addresses.api}/readyz`)).status === 200
    await eventually(ready)
    await eventually(async () => {
      const checks = (await (await fetch(`${service.addresses.api}/readyz`)).json()) as {
        checks: Record<string, string>
      }
      return checks.checks['projector'] === 'live' && checks.checks['settlement'] === 'live'
    })
  })
})

describe('a service that starts while its cluster of event stores has no leader', () => {
  let dataDir: string
  let cluster: ScriptedStore
  let leader: TestNode
  let starting: Promise<Service>
  const reasons: string[] = []
  const ending = new AbortController()

  before(async () => {
    dataDir = await temporaryDirectory()
    leader = await startTestNode()
    cluster = await startScriptedStore()
    const config = readConfig({ PORT: '0', LEDGER_DATA_DIR: dataDir, EVENTSTORE_URL: cluster.clusterAddress })
    starting = compose(config, {
      signal: ending.signal,
      onWaiting: reason => reasons.push(reason),
      onOutage: () => undefined,
    })
    await eventually(() => reasons.some(reason => reason.includes('): ')))
  })
  after(async () => {
    ending.abort()
    await (await starting.catch(() => undefined))?.close()
    cluster.stop()
    await leader.stop()
    await removeFolder(dataDir)
  })

  it('responds to commands with 503 without effect, and executes them once there is a leader', async () => {
    expect(reasons.at(-1)).to.match(/\(EVENTSTORE_URL\): Failed to discover/)
    for (let n = 0; n < 3; n += 1)
      expect(await post(dataDir)).to.deep.equal({ status: 503, code: 'dependency_unavailable' })
    cluster.script.leaderPort = Number(new URL(leader.address).port)
    await starting
    expect((await post(dataDir)).status).to.equal(201)
  })
})
