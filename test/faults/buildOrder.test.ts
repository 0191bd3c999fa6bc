import { join } from 'node:path'
import { expect } from 'chai'
import { mintDevToken } from '../../src/embedded/issuer/devToken.ts'
import { SCOPES } from '../../src/identity/principal.ts'
import { type CleanupStack, createCleanupStack } from '../../src/lib/cleanupStack.ts'
import { run } from '../scripts/cli.ts'
import { diagnosisOf } from '../scripts/ledger/fixtures.ts'
import { anOrder, type Client, clientOf } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { removeFolder } from '../support/folders.ts'
import { rejectionOf } from '../support/rejection.ts'
import { temporaryDirectory } from '../support/service.ts'
import { type Build, copyBuild } from '../support/builds.ts'
import { openPlace, type Place } from '../upgrade/instances.ts'
import { AUDIENCE, startServers } from '../upgrade/servers.ts'

/**
 * Two releases, of which the later one adds the event OrderCancelled in vocabulary 2: what happens when the API is replaced
 * before the feeds, and that nothing happens in the other order.
 */

describe('an upgrade to a build that adds an event', () => {
  let folder: string
  let cleanup: CleanupStack
  let older: Build
  let newer: Build
  let api: Place
  let feeds: Place
  let client: Client
  let commands: Readonly<Record<string, string>>

  before(async () => {
    folder = await temporaryDirectory()
    older = await copyBuild(folder, 'older', {
      'streams/order/events.ts': text => text.replace(/^ {2}OrderCancelled: .*\n/m, ''),
    })
    newer = await copyBuild(folder, 'newer', {
      'streams/addedEvents.ts': text =>
        text.replace(/(ADDED_EVENTS.*) = \{\}/, "$1 = { 'order/OrderCancelled.v1': 2 }"),
    })
  })
  after(() => removeFolder(folder))

  beforeEach(async () => {
    cleanup = createCleanupStack(error => process.stderr.write(`${String(error)}\n`))
    const own = await temporaryDirectory()
    cleanup.defer(() => removeFolder(own))
    const dataDir = join(own, 'servers')
    const broken = new AbortController()
    const { settings, issuer } = await startServers({ dataDir, withKafka: false, fail: () => broken.abort() }, cleanup)
    const shared = { folder: own, settings, signal: broken.signal }
    feeds = await openPlace({ name: 'feeds', role: 'feeds', ...shared }, cleanup)
    api = await openPlace({ name: 'api', role: 'api', ...shared }, cleanup)
    for (const place of [feeds, api]) await place.replaceBy(older)
    commands = { ...settings, LEDGER_DATA_DIR: dataDir, PORT: new URL(api.api).port, METRICS_PORT: 'off' }
    const grant = { tenant: 'acme', subject: 'tester', scopes: SCOPES, user: true }
    client = clientOf(api.api, await mintDevToken({ dataDir, issuer, audience: AUDIENCE, ...grant }))
  })
  afterEach(() => cleanup.run())

  const cancelledOrder = async (): Promise<string> => {
    const { headers, body } = await client.post('/orders', anOrder())
    const cancelled = await client.post(`/orders/${body.id}:cancel`, {}, { 'if-match': headers.get('etag') ?? '' })
    expect(cancelled.status, cancelled.text).to.equal(200)
    return body.id
  }
  const isListedAsCancelled = (id: string): Promise<true> =>
    eventually(async () => {
      const { items } = (await client.get('/orders')).body
      return items.some((order: { id: string; state: string }) => order.id === id && order.state === 'cancelled')
    })
  /** Each feed has parked the event for itself. */
  const replayAll = async (): Promise<void> => {
    const { stdout } = await run('ledger.ts', ['dead-letters', 'list', '--json'], commands)
    const { keys } = JSON.parse(stdout) as { keys: readonly { delivery: string; key: string }[] }
    for (const { delivery, key } of keys)
      await run('ledger.ts', ['dead-letters', 'replay', key, '--delivery', delivery], commands)
  }
  const findings = async (): Promise<ReadonlyMap<string, string>> => {
    const { checks } = diagnosisOf(await run('ledger.ts', ['doctor', '--json'], commands))
    return new Map(checks.filter(({ status }) => status === 'finding').map(({ check, detail }) => [check, detail]))
  }

  it('succeeds when the feeds are replaced before the API', async () => {
    await feeds.replaceBy(newer)
    const { body } = await client.post('/orders', anOrder())
    await api.replaceBy(newer)
    const id = await cancelledOrder()
    await isListedAsCancelled(id)
    expect((await client.get(`/orders/${body.id}`)).body.state).to.equal('open')
    await eventually(async () => (await findings()).size === 0)
  })

  it('parks the event when the API is replaced first, says who is too old, and loses nothing', async () => {
    await api.replaceBy(newer)
    const id = await cancelledOrder()
    const found = await eventually(async () => {
      const now = await findings()
      return now.has('dead letters') && now
    })
    expect(found.get('builds')).to.match(
      /^The log needs vocabulary 2\. Too old: \S+ \(projector, publisher, worker\) reads vocabulary 1\.$/,
    )
    expect((await rejectionOf(feeds.replaceBy(older))).message).to.include(
      'This build reads the events of vocabulary 1, and the log has events of vocabulary 2',
    )
    await feeds.replaceBy(newer)
    await replayAll()
    await isListedAsCancelled(id)
    await eventually(async () => (await findings()).size === 0)
  })
})
