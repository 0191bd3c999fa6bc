import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { expect } from 'chai'
import { factKinds, schemaDocuments } from '../../../src/http/contract/factSchemas.ts'
import type { JsonObject } from '../../../src/ports.ts'
import { FACT_TYPES } from '../../../streams/facts.ts'
import { type Client, clientOf, newKey } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { causeEveryFact, TENANT_FACT_TYPES } from '../../support/everyFact.ts'
import {
  checkFact,
  checkMessage,
  closed,
  consumersComplaint,
  type Fact,
  seenFacts,
  sentIn,
} from '../../support/factSchemaCheck.ts'
import { sharedService } from '../../support/service.ts'

describe('the schemas of the facts', () => {
  let client: Client
  before(async () => {
    client = clientOf((await sharedService()).api)
  })

  it('exist for every type of fact', () => {
    expect(new Set(factKinds.map(({ type }) => type))).to.deep.equal(new Set(FACT_TYPES))
  })

  it('are listed, and each is public at the path of its dataschema', async () => {
    const { items } = (await client.get('/schemas')).body
    expect(items.map(({ href }: { href: string }) => href)).to.have.members([...schemaDocuments.keys()])
    for (const { name, href, title } of items) {
      const answer = await client.get(href)
      expect(answer.headers.get('content-type')).to.equal('application/schema+json')
      expect(answer.headers.get('cache-control')).to.equal('public, max-age=3600')
      expect(href).to.equal(`/schemas/${name}`)
      expect(answer.body).to.include({ $id: href, title, $schema: 'https://json-schema.org/draft/2020-12/schema' })
      expect(answer.body.description).to.match(/\.$/)
    }
  })

  it('are served as application/json too', async () => {
    const answer = await client.get('/schemas/invoice.paid.v1.json', { accept: 'application/json' })
    expect([answer.status, answer.headers.get('content-type')]).to.deep.equal([200, 'application/json'])
  })

  for (const path of ['/schemas/invoice.paid.v9.json', '/schemas/invoice.paid.v1', '/schemas/x', '/schemas/__proto__'])
    it(`are 404 at ${path}`, async () => {
      expect((await client.get(path)).body).to.include({ status: 404, code: 'resource_not_found' })
    })

  for (const [path, document] of schemaDocuments)
    it(`are, at ${path}, valid, open to additions, and satisfied by their own examples`, () => {
      const { $id: _, ...schema } = document
      const open = addFormats.default(new Ajv2020({ strict: true })).compile(schema)
      const strict = addFormats.default(new Ajv2020({ strict: true })).compile(closed(schema) as JsonObject)
      const [example, ...others] = schema['examples'] as JsonObject[]
      expect(others).to.deep.equal([])
      expect([strict(example), strict.errors]).to.deep.equal([true, null])
      expect(open({ ...example, added_later: [{ anything: true }] })).to.equal(true)
      expect(strict({ ...example, added_later: 1 })).to.equal(false)
      // Every member is required, nullable ones included, unless its schema permits its absence.
      const required = new Set(schema['required'] as string[])
      for (const name of Object.keys(example ?? {})) {
        const { [name]: _, ...rest } = example ?? {}
        expect(open(rest), name).to.equal(!required.has(name))
      }
    })

  it('declare every amount as a whole number, beside its currency and exponent', () => {
    let declared = 0
    for (const [path, { properties }] of schemaDocuments) {
      const members = Object.entries(properties as Record<string, JsonObject>)
      const amounts = members.filter(([name]) => /(^|_)amount(_|$)/.test(name))
      for (const [name, { type }] of amounts) expect(type, `${path} ${name}`).to.equal('integer')
      if (amounts.length > 0) expect(Object.keys(properties ?? {}), path).to.include.members(['currency', 'exponent'])
      declared += amounts.length
    }
    expect(declared).to.be.greaterThan(0)
  })
})

describe('every fact of the ledger', () => {
  it('that a tenant can cause is published and matches its schema', async () => {
    const service = await sharedService()
    const client = clientOf(service.api, await service.token({ tenant: `schemas-${newKey().slice(0, 8)}` }))
    await causeEveryFact(client)
    const before = new Map(seenFacts)
    const facts = await eventually(async () => {
      const { items } = (await client.get('/events?limit=100')).body as { items: Fact[] }
      return new Set(items.map(({ type }) => type)).size >= TENANT_FACT_TYPES.length && items
    })
    expect(new Set(facts.map(({ type }) => type))).to.deep.equal(new Set(TENANT_FACT_TYPES))
    for (const fact of facts) {
      expect(consumersComplaint(fact)).to.equal(undefined)
      // The tests' client has validated the fact against its schema.
      const key = `page ${fact.dataschema}`
      expect(seenFacts.get(key), key).to.be.greaterThan(before.get(key) ?? 0)
    }
  })
})

describe('the check of every fact against its schema', () => {
  const kind = factKinds.find(({ type }) => type === 'invoice.paid')
  const [envelope] = (schemaDocuments.get('/schemas/cloudevent.v1.json')?.['examples'] ?? []) as Fact[]
  const paid = {
    ...envelope,
    type: 'invoice.paid',
    dataschema: 'https://ledger.example/schemas/invoice.paid.v1.json',
    data: kind?.example ?? {},
  } as Fact & { data: object }
  const complaintAbout = (fact: object): string => {
    try {
      checkFact(fact as Fact, 'page')
      return 'nothing'
    } catch (error) {
      return String(error)
    }
  }

  it('accepts facts as published', () => expect(complaintAbout(paid)).to.equal('nothing'))

  for (const [what, changed, complaint] of [
    ['an undeclared member of the data', { data: { ...paid.data, tax: 1 } }, 'additional properties'],
    ['an undeclared attribute', { tax: '1' }, 'additional properties'],
    ['an amount with a fraction', { data: { ...paid.data, amount_paid: 9.5 } }, 'must be integer'],
    ['an amount as text', { data: { ...paid.data, amount_paid: '9' } }, 'must be integer'],
    ['null where a value is promised', { data: { ...paid.data, payment_id: null } }, 'must be string'],
    ['a missing member', { data: { ...paid.data, payment_id: undefined } }, "required property 'payment_id'"],
    ['a malformed time', { data: { ...paid.data, paid_at: 'yesterday' } }, 'date-time'],
    ['a schema of another type', { type: 'invoice.voided' }, 'is no schema of invoice.voided'],
    ['a schema without the address of the service', { dataschema: '/schemas/invoice.paid.v1.json' }, 'format "uri"'],
    [
      'a schema that is not published',
      { dataschema: 'https://ledger.example/schemas/invoice.paid.v7.json' },
      'no schema is published',
    ],
  ] as const)
    it(`rejects ${what}`, () => {
      expect(complaintAbout(JSON.parse(JSON.stringify({ ...paid, ...changed })))).to.include(complaint)
    })

  it('rejects a message with another key or an undeclared header', () => {
    const { data, datacontenttype, ...attributes } = paid as Fact & Record<string, unknown>
    const named = Object.entries(attributes).map(([name, value]) => [`ce_${name}`, String(value)])
    const headers = { ...Object.fromEntries(named), 'content-type': String(datacontenttype) }
    const message = { key: String(attributes['partitionkey']), headers, value: JSON.stringify(data) }
    expect(() => checkMessage(message)).to.not.throw()
    expect(() => checkMessage({ ...message, key: 'inv_other' })).to.throw('with the key inv_other')
    expect(() => checkMessage({ ...message, headers: { ...headers, shop: 'north' } })).to.throw(
      'undeclared header shop',
    )
    expect(() => checkMessage({ ...message, headers: { ...headers, ce_shop: 'x' } })).to.throw('additional properties')
    expect(() => checkMessage({ ...message, value: '{}' })).to.throw('required property')
  })

  it('rejects a block of a stream without an id or with invalid data, and ignores comments', () => {
    expect(sentIn(': still here')).to.deep.equal([])
    const block = `id: x\nevent: invoice.paid\ndata: ${JSON.stringify(paid)}`
    expect(sentIn(block)).to.deep.equal([{ id: 'x', event: 'invoice.paid', data: paid }])
    expect(() => sentIn(block.replace('id: x\n', ''))).to.throw('No event of this stream')
    expect(() => sentIn(block.replace('4990', '"4990"'))).to.throw('must be integer')
  })
})
