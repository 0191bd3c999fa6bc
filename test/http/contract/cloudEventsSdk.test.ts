import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { CloudEvent, type CloudEventV1, Kafka } from 'cloudevents'
import { expect } from 'chai'
import { openDatabase } from '../../../src/adapters/postgres/database.ts'
import { rememberSchemaBaseUrl, withSchemaBaseUrl } from '../../../src/compose/schemaBaseUrl.ts'
import { messageOf } from '../../../src/feeds/publisher.ts'
import type { Database, FactBus, FactMessage } from '../../../src/ports.ts'
import { type CloudEvent as Fact, FACT_TYPES } from '../../../streams/facts.ts'
import {
  aPayment,
  approvedInvoice,
  type Client,
  clientOf,
  eventually,
  newKey,
  pay,
  patientFetch,
} from '../../support/client.ts'
import { sharedService, type TestService } from '../../support/service.ts'

/** The SDK of CloudEvents in strict mode, which validates against the official schema. */
const strictly = (event: unknown): CloudEvent<unknown> => new CloudEvent(event as CloudEventV1<unknown>, true)

/** The number of fact types that a tenant can cause; manifests belong to the system tenant. */
const TYPES_SEEN = 9

describe('facts and the SDK of CloudEvents', function () {
  this.timeout(60_000)
  let service: TestService
  let client: Client
  let facts: readonly Fact[]

  before(async () => {
    service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant: `sdk-${newKey().slice(0, 8)}` }))
    await play()
    facts = await eventually(async () => {
      const { items } = (await client.get('/events?limit=100')).body as { items: Fact[] }
      return new Set(items.map(({ type }) => type)).size === TYPES_SEEN && items
    })
  })

  const play = async (): Promise<void> => {
    const first = await approvedInvoice(client)
    const paid = await pay(client, aPayment(first.invoiceId, { amount: 900 }))
    await client.post(`/payments/${paid.body.id}:refund`, { reason: 'r' }, { 'idempotency-key': newKey() })
    const voided = await approvedInvoice(client)
    await client.post(`/invoices/${voided.invoiceId}:void`, { reason: 'r' }, { 'if-match': voided.etag })
    const order = await client.post('/orders', { currency: 'USD', lines: [{ sku: 'a', quantity: 1, unit_amount: 1 }] })
    const ifMatch = { 'if-match': order.headers.get('etag') ?? '' }
    await client.post(`/orders/${order.body.id}:cancel`, { reason: 'r' }, ifMatch)
    const { invoiceId } = await approvedInvoice(client)
    const deferred = await pay(client, aPayment(invoiceId, { settlement: 'deferred' }))
    await client.post(`/payments/${deferred.body.id}:fail`, { code: 'declined' })
    await client.post('/exports', { resource: 'orders', format: 'csv' })
  }

  it('of GET /events are accepted in strict mode, and are unchanged afterwards', () => {
    for (const fact of facts) expect(JSON.parse(JSON.stringify(strictly(fact))), fact.type).to.deep.equal(fact)
  })

  it('link to their schema at the address of the service', async () => {
    for (const { type, dataschema } of facts) {
      expect(dataschema).to.match(new RegExp(`^${service.api}/schemas/${type}\\.v\\d+\\.json$`))
      expect((await patientFetch(dataschema)).status, dataschema).to.equal(200)
    }
  })

  it('of the event stream are accepted in strict mode', async () => {
    const response = await patientFetch(`${service.api}/events`, {
      headers: { accept: 'text/event-stream', authorization: `Bearer ${await tokenOf()}` },
    })
    let text = ''
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk).toString()
      if ((text.match(/^data: .*\n/gm) ?? []).length >= facts.length) break
    }
    const told = (text.match(/(?<=^data: ).*(?=\n)/gm) ?? []).map(line => JSON.parse(line) as Fact)
    expect(told).to.deep.equal(facts)
    for (const fact of told) strictly(fact)
  })

  const tokenOf = (): Promise<string> => service.token({ tenant: facts[0]?.tenantid ?? '' })

  it('of Kafka messages in binary mode are accepted in strict mode', async () => {
    const sent: FactMessage[] = []
    const bus = withSchemaBaseUrl(collecting(sent), service.api)
    const inside = facts.map(fact => ({ ...fact, dataschema: new URL(fact.dataschema).pathname }))
    await bus.publish(inside.map(fact => messageOf('t', fact)))
    for (const [index, { headers, key, value }] of sent.entries()) {
      const message = { headers: { ...headers }, key, value, body: value, timestamp: '' }
      const read = Kafka.toEvent<unknown>(message)
      const event = Array.isArray(read) ? expect.fail('There is one event in a message.') : strictly(read)
      const { traceparent: _, ...fact } = facts[index] as Fact
      expect(JSON.parse(JSON.stringify(event))).to.deep.include(fact)
    }
  })
})

/** Every fact of every version, the manifests of operators included. */
describe('golden facts and the SDK of CloudEvents', () => {
  const folder = new URL('../../golden-facts/', import.meta.url)
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const read = (file: string) => JSON.parse(readFileSync(new URL(file, folder), 'utf8'))

  it('are accepted in strict mode, and are unchanged afterwards', () => {
    const types = new Set<string>()
    for (const file of files.filter(name => name.endsWith('.event.json'))) {
      const fact = read(file)
      expect(JSON.parse(JSON.stringify(strictly(fact))), file).to.deep.equal(fact)
      types.add(fact.type)
    }
    expect([...types]).to.have.members([...FACT_TYPES])
  })

  it('are accepted as Kafka messages in strict mode', () => {
    for (const file of files.filter(name => name.endsWith('.message.json'))) {
      const { headers, key, value } = read(file)
      const message = { headers, key, value, body: value, timestamp: '' }
      const event = Kafka.toEvent<unknown>(message)
      strictly(Array.isArray(event) ? expect.fail(file) : event)
    }
  })
})

/** A bus that records the published messages. */
const collecting = (sent: FactMessage[]): FactBus => ({
  ensureTopics: async () => undefined,
  publish: async messages => void sent.push(...messages),
  deleteTopics: async () => undefined,
  grantReading: async () => 'not_enforced',
  revokeReading: async () => undefined,
  close: async () => undefined,
})

describe('the base address of dataschema', () => {
  let database: Database
  let schema: string

  before(async () => {
    database = openDatabase({ connectionString: (await sharedService()).addresses.postgres })
  })
  after(() => database.close())

  /** A database with an empty table, as at the first start of a ledger. */
  const fresh = (): Pick<Database, 'transaction'> => {
    schema = `fact_base_${randomUUID().replaceAll('-', '')}`
    return {
      transaction: work =>
        database.transaction(async sql => {
          await sql(`create schema if not exists ${schema}`)
          await sql(`set local search_path to ${schema}`)
          await sql(
            `create table if not exists fact_base (id integer primary key, url text not null, is_set boolean not null)`,
          )
          return work(sql)
        }),
    }
  }
  afterEach(() => database.sql(`drop schema if exists ${schema} cascade`))

  it('stays that of the first start, on every port and with later settings', async () => {
    const ledger = fresh()
    const starts = [
      await rememberSchemaBaseUrl(ledger, { publicUrl: 'https://one.example', isSet: true }),
      await rememberSchemaBaseUrl(ledger, { publicUrl: 'http://localhost:4711', isSet: false }),
      await rememberSchemaBaseUrl(ledger, { publicUrl: 'https://two.example', isSet: true }),
    ]
    expect(starts).to.deep.equal(Array.from({ length: 3 }, () => 'https://one.example'))
  })

  it('is the first that is set, if none was set at the first start', async () => {
    const ledger = fresh()
    const starts = [
      await rememberSchemaBaseUrl(ledger, { publicUrl: 'http://localhost:1', isSet: false }),
      await rememberSchemaBaseUrl(ledger, { publicUrl: 'http://localhost:2', isSet: false }),
      await rememberSchemaBaseUrl(ledger, { publicUrl: 'https://one.example', isSet: true }),
      await rememberSchemaBaseUrl(ledger, { publicUrl: 'https://two.example', isSet: true }),
    ]
    const [local, set] = ['http://localhost:1', 'https://one.example']
    expect(starts).to.deep.equal([local, local, set, set])
  })
})
