import { expect } from 'chai'
import { openEventStore } from '../../../src/adapters/eventstoredb/eventStore.ts'
import { openDatabase } from '../../../src/adapters/postgres/database.ts'
import { DENIALS_RECORDED_EACH_MAX } from '../../../src/commands/denials.ts'
import { tenantsAbove } from '../../../src/commands/quotas/tenantBytes.ts'
import type { Database, EventStore } from '../../../src/ports.ts'
import {
  type Answer,
  anOrder,
  aPayment,
  approvedInvoice,
  type Client,
  clientOf,
  newKey,
  pay,
} from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { removeFolder } from '../../support/folders.ts'
import { type ServiceProcess, startProcess, temporaryDirectory } from '../../support/service.ts'
import { run } from '../../scripts/cli.ts'

const QUOTA_BYTES = 256 * 1024
const COMMANDS_MAX = 200
const SECONDS_PER_DAY = 86_400

/** An order of about 16 KB, with a reference of its own. */
const largeOrder = (number: number) => ({
  ...anOrder(),
  customer_reference: `customer ${number}`,
  metadata: Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`member_${index}`, 'x'.repeat(500)])),
})

describe('the quota of bytes', () => {
  let dataDir: string
  let service: ServiceProcess
  let store: EventStore
  let database: Database
  const open = (): void => {
    store = openEventStore({ connectionString: service.addresses.event_store })
    database = openDatabase({ connectionString: service.addresses.postgres })
  }
  const start = async (): Promise<void> => {
    service = await startProcess(dataDir, { TENANT_BYTES_PER_DAY: '256KiB' })
    open()
  }
  const stop = async (): Promise<void> => {
    await Promise.all([store.close(), database.close()])
    expect(await service.end('SIGTERM')).to.equal(0)
  }
  before(async () => {
    dataDir = await temporaryDirectory()
    await start()
  })
  after(async () => {
    await stop()
    await removeFolder(dataDir)
  })

  const as = async (tenant: string, more: object = {}): Promise<Client> =>
    clientOf(service.api, await service.token({ tenant, ...more }))

  /** Creates large orders until one is refused, and resolves to the refusal. */
  const fill = async (client: Client): Promise<Answer> => {
    for (let number = 1; number <= COMMANDS_MAX; number++) {
      const answer = await client.post('/orders', largeOrder(number))
      if (answer.status !== 201) return answer
    }
    throw new Error('No command was refused.')
  }
  const usedBy = async (tenant: string): Promise<number> =>
    (await tenantsAbove(database.sql, 0)).find(one => one.tenant === tenant)?.bytes ?? 0
  /** The stored bytes of a tenant's events, by the log itself. */
  const inLog = async (tenant: string): Promise<number> => {
    const ended = new AbortController()
    let bytes = 0
    for await (const item of store.subscribe({ after: 'start', withBytes: true, signal: ended.signal })) {
      if (item.kind === 'caught_up') break
      if (item.kind !== 'event' || item.event.metadata['tenant'] !== tenant) continue
      bytes += (item.event.bytes?.data.length ?? 0) + (item.event.bytes?.metadata.length ?? 0)
    }
    ended.abort()
    return bytes
  }
  const textsOf = async (tenant: string): Promise<number> => {
    const [row] = await database.sql<{ bytes: bigint }>(
      'select coalesce(sum(octet_length(text)), 0) as bytes from personal_texts where tenant_id = $1',
      [tenant],
    )
    return Number(row?.bytes)
  }

  it('refuses new commands with its size, the usage and the time at which it begins anew, and stores nothing', async () => {
    const client = await as('full')
    const refused = await fill(client)
    expect([refused.status, refused.body.code]).to.deep.equal([429, 'quota_exceeded'])
    expect(refused.body.detail).to.match(/allows your tenant to store 256 KiB a day, and 2\d\d(\.\d+)? KiB have been/)
    expect(refused.body.detail).to.include('Nothing of this request was stored.')
    expect(Number(refused.headers.get('retry-after'))).to.be.within(1, SECONDS_PER_DAY)
    const before = { log: await inLog('full'), texts: await textsOf('full') }
    const { invoiceId } = await approvedInvoice(await as('roomy'))
    for (const answer of [
      await client.post('/orders', anOrder()),
      await client.post('/orders', { ...anOrder(), customer_reference: 'a new customer' }),
      await client.post('/exports', { resource: 'orders', format: 'csv' }),
      await client.post('/subscriptions', { types: ['order.created'], start: 'now' }),
      await client.request('PATCH', `/orders/${(await client.get('/orders')).body.items[0].id}`, {
        body: { description: 'changed' },
        headers: { 'content-type': 'application/merge-patch+json', 'if-match': '"any"' },
      }),
    ])
      expect(['quota_exceeded', 'precondition_failed']).to.include(answer.body.code)
    expect({ log: await inLog('full'), texts: await textsOf('full') }).to.deep.equal(before)
    expect((await pay(await as('roomy'), aPayment(invoiceId))).status, 'another tenant').to.equal(201)
  })

  it('counts the bytes of events and of personal texts as they are stored, also those of process managers', async () => {
    for (const tenant of ['full', 'roomy'])
      await eventually(async () => (await usedBy(tenant)) === (await inLog(tenant)) + (await textsOf(tenant)))
    expect(await usedBy('full')).to.be.within(QUOTA_BYTES, QUOTA_BYTES * 1.2)
  })

  it('repeats the answers of used keys, and lets what was begun be ended', async () => {
    const client = await as('begun')
    const keyed = { 'idempotency-key': newKey() }
    const body = { ...anOrder(), customer_reference: 'Jane' }
    const order = await client.post('/orders', body, keyed)
    const { invoiceId } = await approvedInvoice(client)
    const key = newKey()
    const payment = aPayment(invoiceId, { settlement: 'deferred', reference: 'INV-1' })
    const paid = await pay(client, payment, key)
    const failing = await pay(client, payment, newKey())
    expect([paid.status, failing.body.code]).to.deep.equal([201, 'payment_reference_conflict'])
    const operation = await client.post('/exports', { resource: 'orders', format: 'csv' })
    const subscription = await client.post('/subscriptions', { types: ['order.created'], start: 'now' })
    expect((await fill(client)).status).to.equal(429)
    const again = [await client.post('/orders', body, keyed), await pay(client, payment, key)]
    expect(again.map(({ status, text }) => [status, text])).to.deep.equal([order, paid].map(one => [201, one.text]))
    expect((await pay(client, aPayment(invoiceId))).body.code).to.equal('quota_exceeded')
    const settled = await client.post(`/payments/${paid.body.id}:settle`)
    expect([settled.status, settled.body.state]).to.deep.equal([200, 'succeeded'])
    expect((await client.post(`/operations/${operation.body.id}:cancel`)).status).to.equal(200)
    expect((await client.request('DELETE', `/subscriptions/${subscription.body.id}`)).status).to.equal(204)
    expect((await client.get('/audit-records')).status, 'reads that are audited').to.equal(200)
  })

  it("counts denials, and a stranger's against the stranger's own quota", async () => {
    const owner = await as('owner')
    const { invoiceId } = await approvedInvoice(owner)
    const stranger = await as('stranger')
    const ownersBefore = await inLog('owner')
    for (let attempt = 0; attempt < DENIALS_RECORDED_EACH_MAX; attempt++)
      expect((await stranger.post(`/invoices/${invoiceId}:approve`, {}, { 'if-match': '"0"' })).status).to.equal(404)
    const ownersRecords = (await inLog('owner')) - ownersBefore
    const own = await inLog('stranger')
    expect(Math.min(ownersRecords, own)).to.be.greaterThan(DENIALS_RECORDED_EACH_MAX * 100)
    await eventually(async () => (await usedBy('stranger')) === own + ownersRecords)
    expect(await usedBy('owner')).to.equal(ownersBefore)
  })

  it('is the same for the next process', async () => {
    await stop()
    await start()
    const client = await as('full')
    await eventually(async () => (await client.post('/orders', anOrder())).status === 429)
    expect((await inLog('full')) + (await textsOf('full'))).to.be.within(QUOTA_BYTES, QUOTA_BYTES * 1.2)
  })

  it('is in a metric without names, and a finding of doctor with the names, before it is reached', async () => {
    const nearly = await as('nearly')
    for (let number = 0; (await usedBy('nearly')) < QUOTA_BYTES * 0.8 && number < COMMANDS_MAX; number++) {
      expect((await nearly.post('/orders', largeOrder(number))).status).to.equal(201)
      const expected = await inLog('nearly')
      // The bytes are counted once a second.
      if (expected > QUOTA_BYTES * 0.7) await eventually(async () => (await usedBy('nearly')) >= expected)
    }
    const metrics = await (await fetch(service.addresses.metrics ?? '')).text()
    const [line = '', value] = /^ledger_tenant_bytes_used_ratio\{[^}]*\} (.*)$/m.exec(metrics) ?? []
    expect(Number(value)).to.be.within(1, 1.2)
    expect(line).to.not.match(/full|nearly|begun/)
    const settings = { LEDGER_DATA_DIR: dataDir, TENANT_BYTES_PER_DAY: '256KiB' }
    const { stdout } = await run('ledger.ts', ['doctor', '--json'], settings)
    const check = JSON.parse(stdout).checks.find((one: { check: string }) => one.check === 'tenant storage')
    expect(check.status).to.equal('finding')
    expect(check.detail).to.match(/^Stored today, of 256 KiB a day: .*\bnearly 2\d\d/)
    for (const tenant of ['full', 'begun']) expect(check.detail).to.include(tenant)
    for (const tenant of ['roomy', 'owner']) expect(check.detail).to.not.include(tenant)
  })
})
