import specs from '@asyncapi/specs'
import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'
import { expect } from 'chai'
import { facts } from '../../../projections/facts/projection.ts'
import { topicOf } from '../../../projections/factTopics.ts'
import { factMessageOf } from '../../../src/feeds/factMessage.ts'
import { factKinds, schemaDocuments } from '../../../src/http/contract/factSchemas.ts'
import type { JsonObject } from '../../../src/ports.ts'
import { type CloudEvent, FACT_TYPES, schemaPathOf } from '../../../streams/facts.ts'
import { clientOf } from '../../support/client.ts'
import { sharedService } from '../../support/service.ts'

type Referring = { readonly $ref: string }
type Channel = {
  readonly address: string
  readonly servers: readonly Referring[]
  readonly messages: Readonly<Record<string, Referring>>
  readonly bindings?: { readonly kafka: JsonObject }
}
type Document = {
  readonly asyncapi: string
  readonly info: { readonly description: string }
  readonly channels: Readonly<Record<string, Channel>>
  readonly operations: Readonly<Record<string, { readonly action: string; readonly channel: Referring }>>
}

/** The official schema of AsyncAPI 3.0.0. It includes the JSON Schema metaschema, which ajv has already. */
const isAsyncApi = () => {
  const schema = structuredClone(specs.schemas['3.0.0']) as { definitions: Record<string, unknown> }
  delete schema.definitions['http://json-schema.org/draft-07/schema']
  return addFormats.default(new Ajv({ strict: false, allErrors: true })).compile(schema)
}

describe('asyncapi.json', () => {
  let document: Document
  before(async () => {
    const served = await clientOf((await sharedService()).api).get('/asyncapi.json')
    expect([served.status, served.headers.get('content-type')]).to.deep.equal([200, 'application/json'])
    expect(served.headers.get('cache-control')).to.equal('public, max-age=300')
    document = served.body
  })

  const referencesIn = (node: unknown): string[] =>
    node === null || typeof node !== 'object'
      ? []
      : Object.entries(node).flatMap(([name, inner]) => (name === '$ref' ? [String(inner)] : referencesIn(inner)))
  const at = (reference: string): unknown =>
    reference
      .split('/')
      .slice(1)
      .reduce<unknown>((node, name) => (node as Record<string, unknown> | undefined)?.[name], document)
  const channelAt = (address: string): Channel => {
    const match = Object.values(document.channels).find(channel => channel.address === address)
    if (match === undefined) throw new Error(`No channel ${address}.`)
    return match
  }

  it('is a valid, public AsyncAPI 3.0 document', () => {
    expect(document.asyncapi).to.equal('3.0.0')
    const validate = isAsyncApi()
    expect([validate(document), validate.errors]).to.deep.equal([true, null])
    expect(validate({ ...document, info: {} })).to.equal(false)
    const [name = ''] = Object.keys(document.operations)
    expect(validate({ ...document, operations: { [name]: { action: 'shout' } } })).to.equal(false)
  })

  it('has no dangling reference', () => {
    const references = referencesIn(document)
    expect(references.length).to.be.greaterThan(50)
    for (const reference of references) expect(at(reference), reference).to.be.an('object')
  })

  it('has a channel for every topic that is published to, with its settings', () => {
    for (const category of facts.categories) {
      const { bindings } = channelAt(topicOf(category))
      expect(bindings?.kafka).to.deep.include({ topic: topicOf(category), partitions: 12 })
      expect(bindings?.kafka['topicConfiguration']).to.deep.include({ 'retention.ms': 604_800_000 })
    }
    for (const address of ['ledger.subscription.{id}', 'ledger.subscription.{id}.dlq', '/events']) channelAt(address)
  })

  it('has a send operation for every channel, and no receive operation', () => {
    const operations = Object.values(document.operations)
    for (const { action } of operations) expect(action).to.equal('send')
    const channels = Object.keys(document.channels).map(name => `#/channels/${name}`)
    expect(operations.map(({ channel }) => channel.$ref)).to.have.members(channels)
  })

  it('has every version of every fact on one topic and at GET /events', () => {
    const names = factKinds.map(kind => schemaPathOf(kind).slice('/schemas/'.length, -'.json'.length))
    const ofAnalysts = facts.categories.flatMap(category => Object.keys(channelAt(topicOf(category)).messages))
    expect(ofAnalysts).to.have.members(names)
    expect(Object.keys(channelAt('/events').messages)).to.have.members(names)
    // Manifests belong to the system tenant.
    const subscribable = names.filter(name => !name.startsWith('ledger.manifest.'))
    expect(Object.keys(channelAt('ledger.subscription.{id}').messages)).to.have.members(subscribable)
    expect(Object.keys(channelAt('ledger.subscription.{id}.dlq').messages)).to.deep.equal(['dead-letter'])
    expect(new Set(factKinds.map(({ type }) => type))).to.deep.equal(new Set(FACT_TYPES))
  })

  it('has the schemas that are served at /schemas, unchanged', () => {
    for (const [path, { $id: _, $schema: __, ...schema }] of schemaDocuments) {
      const name = path.slice('/schemas/'.length, -'.json'.length)
      const published = at(`#/components/schemas`) as Record<string, JsonObject>
      expect(published[name]).to.deep.equal({ ...schema, 'x-published-at': path })
    }
  })

  it('has a schema of the headers that accepts published messages, and rejects incomplete ones', () => {
    const ajv = addFormats.default(new Ajv({ strict: false }))
    ajv.addSchema({ $id: 'document', ...document })
    const [envelope] = (schemaDocuments.get('/schemas/cloudevent.v1.json')?.['examples'] ?? []) as CloudEvent[]
    if (envelope === undefined) return expect.fail('There is no example.')
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    const { headers } = factMessageOf('t', { ...envelope, traceparent })
    const validate = ajv.getSchema('document#/components/messages/order.created.v1/headers')
    expect([validate?.(headers), validate?.errors]).to.deep.equal([true, null])
    expect(validate?.({ ...headers, ce_type: 'invoice.paid' })).to.equal(false)
    const declared = at('#/components/schemas/kafka-headers/properties') as object
    expect(Object.keys(declared)).to.have.members(Object.keys(headers))
    for (const name of Object.keys(headers).filter(name => name !== 'traceparent'))
      expect(validate?.(Object.fromEntries(Object.entries(headers).filter(([other]) => other !== name)))).to.equal(
        false,
      )
  })

  it('states the guarantees, and refers to the rules of evolution', () => {
    for (const words of ['At least once', 'In order per key', 'Complete', 'How a fact evolves', 'CONTRIBUTING.md'])
      expect(document.info.description).to.include(words)
  })
})
