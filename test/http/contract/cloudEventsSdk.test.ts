import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { CloudEvent, type CloudEventV1, Kafka } from 'cloudevents'
import { expect } from 'chai'
import { openDatabase } from '../../../src/adapters/postgres/database.ts'
import { rememberSchemaBaseUrl, withSchemaBaseUrl } from '../../../src/compose/schemaBaseUrl.ts'
import { factMessageOf } from '../../../src/feeds/factMessage.ts'
import type { Database, FactBus, FactMessage } from '../../../src/ports.ts'
import { type CloudEvent as Fact, FACT_TYPES } from '../../../streams/facts.ts'
import { type Client, clientOf, newKey, retryingFetch } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { causeEveryFact, TENANT_FACT_TYPES } from '../../support/everyFact.ts'
import { sharedService, type TestService } from '../../support/service.ts'

/** The SDK of CloudEvents in strict mode, which validates against the official schema. */
const strictly = (event: unknown): CloudEvent<unknown> => new CloudEvent(event as CloudEventV1<unknown>, true)

describe('facts and the SDK of CloudEvents', () => {
  let service: TestService
  let client: Client
  let facts: readonly Fact[]

  before(async () => {
    service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant: `sdk-${newKey().slice(0, 8)}` }))
    await causeEveryFact(client)
    facts = await eventually(async () => {
      const { items } = (await client.get('/events?limit=100')).body as { items: Fact[] }
      return new Set(items.map(({ type }) => type)).size === TENANT_FACT_TYPES.length && items
    })
  })

  it('of GET /events are accepted in strict mode, and are unchanged afterwards', () => {
    for (const fact of facts) expect(JSON.parse(JSON.stringify(strictly(fact))), fact.type).to.deep.equal(fact)
  })

  it('link to their schema at the address of the service', async () => {
    for (const { type, dataschema } of facts) {
      expect(dataschema).to.match(new RegExp(`^${service.api}/schemas/${type}\\.v\\d+\\.json$`))
      expect((await retryingFetch(dataschema)).status, dataschema).to.equal(200)
    }
  })

  it('of the event stream are accepted in strict mode', async () => {
    const response = await retryingFetch(`${service.api}/events`, {
      headers: { accept: 'text/event-stream', authorization: `Bearer ${await tokenOf()}` },
    })
    let text = ''
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk).toString()
      if ((text.match(/^data: .*\n/gm) ?? []).length >= facts.length) break
    }
    const streamed = (text.match(/(?<=^data: ).*(?=\n)/gm) ?? []).map(line => JSON.parse(line) as Fact)
    // Facts that were published after those of the page may follow.
    expect(streamed.slice(0, facts.length)).to.deep.equal(facts)
    for (const fact of streamed) strictly(fact)
  })

  const tokenOf = (): Promise<string> => service.token({ tenant: facts[0]?.tenantid ?? '' })

  it('of Kafka messages in binary mode are accepted in strict mode', async () => {
    const sent: FactMessage[] = []
    const bus = withSchemaBaseUrl(collecting(sent), service.api)
    const internal = facts.map(fact => ({ ...fact, dataschema: new URL(fact.dataschema).pathname }))
    await bus.publish(internal.map(fact => factMessageOf('t', fact)))
    expect(sent).to.have.length(facts.length)
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
    const messages = files.filter(name => name.endsWith('.message.json'))
    expect(messages).to.not.have.length(0)
    for (const file of messages) {
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
