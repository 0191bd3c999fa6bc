import { expect } from 'chai'
import { MANIFEST_CATEGORIES, topicOf } from '../../../projections/factTopics.ts'
import { routes } from '../../../src/http/index.ts'
import {
  RESOURCE_OF_FACT,
  type Resource,
  SCOPE_OF,
  scopesOfCategory,
  TENANT_FACT_TYPES,
} from '../../../src/identity/resourceScopes.ts'
import { EXPORT_RESOURCES } from '../../../streams/operation/index.ts'
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
import { retryingFetch } from '../../support/client.ts'
import { eventually, takesEffect } from '../../support/eventually.ts'
import { askFor, ended } from '../../support/exportSteps.ts'
import { type Sent, sentIn } from '../../support/factSchemaCheck.ts'
import { sharedService, type TestService } from '../../support/service.ts'
import { ledger } from '../../scripts/ledger/fixtures.ts'

const SSE = 'text/event-stream'
const LISTS: Readonly<Record<Resource, string>> = {
  orders: '/orders',
  invoices: '/invoices',
  payments: '/payments',
  journal_entries: '/journal-entries',
  operations: '/operations',
}
const WAYS = ['events:read', 'events:subscribe', 'exports:read', 'exports:write']
const scopesWithout = (scope: string): string[] =>
  [...new Set([...WAYS, ...Object.values(SCOPE_OF)])].filter(other => other !== scope)
const IN_EFFECT_WITHIN_MS = 5_000

describe('the scope of a resource', () => {
  let service: TestService
  let client: Client
  const tenant = `scopes-${newKey().slice(0, 8)}`
  const exported = new Map<string, string>()
  const tokenWith = (scopes: readonly string[], subject = 'reader') => service.token({ tenant, subject, scopes })
  const clientWith = async (scopes: readonly string[]): Promise<Client> =>
    clientOf(service.api, await tokenWith(scopes))

  const expectRefused = ({ status, body, headers }: Answer, scope: string): void => {
    expect({ status, code: body.code }, JSON.stringify(body)).to.deep.equal({ status: 403, code: 'insufficient_scope' })
    expect(headers.get('www-authenticate')).to.include(scope)
  }

  /** The events of a stream up to `last`. */
  const streamedUntil = async (token: string, last: string, query = ''): Promise<Sent[]> => {
    const abort = new AbortController()
    const headers = { authorization: `Bearer ${token}`, accept: SSE }
    const response = await retryingFetch(`${service.api}/events${query}`, { headers, signal: abort.signal })
    let text = ''
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk
      if (text.includes(last) && text.endsWith('\n\n')) break
    }
    abort.abort()
    return text.split('\n\n').filter(Boolean).flatMap(sentIn)
  }

  before(async () => {
    service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant }))
    const { invoiceId } = await approvedInvoice(client, 300)
    await pay(client, aPayment(invoiceId, { amount: 300 }))
    for (const resource of EXPORT_RESOURCES) {
      const id = await askFor(client, { resource, format: 'csv' })
      await ended(client, id)
      exported.set(resource, id)
    }
    await eventually(async () => (await client.get('/events?type=export.completed')).body.items.length === 4)
  })

  for (const [resource, path] of Object.entries(LISTS))
    it(`is that of the list of ${resource}`, () => {
      const list = routes.find(route => route.method === 'GET' && route.path === path)
      expect(list?.scope).to.equal(SCOPE_OF[resource as Resource])
    })

  for (const resource of EXPORT_RESOURCES)
    it(`is needed to create an export of ${resource}, and to read its file and manifest`, async () => {
      const scope = SCOPE_OF[resource]
      const [without, only] = [await clientWith(scopesWithout(scope)), await clientWith([...WAYS, scope])]
      const requested = { resource, format: 'csv' }
      expectRefused(await without.post('/exports', requested), scope)
      expect((await only.post('/exports', requested)).status).to.equal(202)
      for (const part of ['content', 'manifest']) {
        const path = `/exports/${exported.get(resource)}/${part}`
        expectRefused(await without.get(path), scope)
        expect((await only.get(path)).status).to.equal(200)
      }
    })

  for (const type of TENANT_FACT_TYPES)
    it(`is needed for ${type} in pages, streams and subscriptions`, async () => {
      const scope = SCOPE_OF[RESOURCE_OF_FACT[type]]
      const [without, only] = [
        await clientWith(scopesWithout(scope)),
        await clientWith(['events:read', scope, 'events:subscribe']),
      ]
      expectRefused(await without.get(`/events?type=${type}`), scope)
      expectRefused(await without.request('GET', `/events?type=${type}`, { headers: { accept: SSE } }), scope)
      expectRefused(await without.post('/subscriptions', { types: [type], start: 'now' }), scope)
      const all: { type: string; id: string }[] = (await client.get('/events?limit=100')).body.items
      const permitted = await only.get(`/events?type=${type}&limit=100`)
      const ids = all.filter(fact => fact.type === type).map(({ id }) => id)
      const shown = permitted.body.items.slice(0, ids.length)
      expect(shown.map(({ id }: { id: string }) => id)).to.deep.equal(ids)
      for (const fact of permitted.body.items) expect(fact.type).to.equal(type)
    })

  for (const [resource, scope] of Object.entries(SCOPE_OF))
    it(`leaves the facts about ${resource} out of pages and of streams, also resumed ones`, async () => {
      const all: { type: keyof typeof RESOURCE_OF_FACT; id: string }[] = (await client.get('/events?limit=100')).body
        .items
      const expected = all.filter(({ type }) => RESOURCE_OF_FACT[type] !== resource)
      const token = await tokenWith(scopesWithout(scope))
      const page = (await clientOf(service.api, token).get('/events?limit=100')).body
      // Exports of earlier cases may end meanwhile: their facts come last.
      const shown = page.items.slice(0, expected.length)
      expect(shown.map(({ id }: { id: string }) => id)).to.deep.equal(expected.map(({ id }) => id))
      for (const { type } of page.items as typeof all) expect(RESOURCE_OF_FACT[type]).to.not.equal(resource)
      const first = (await client.get('/events?limit=1')).body.page.next_cursor
      const rest = expected.filter(({ id }) => id !== all[0]?.id)
      const last = expected.at(-1)?.id ?? ''
      for (const [query, ids] of [
        ['', expected],
        [`?cursor=${encodeURIComponent(first)}`, rest],
      ] as const)
        expect((await streamedUntil(token, last, query)).slice(0, ids.length).map(({ data }) => data.id)).to.deep.equal(
          ids.map(({ id }) => id),
        )
    })

  for (const category of MANIFEST_CATEGORIES)
    it(`is needed for the manifest of ${topicOf(category)}`, async () => {
      const topic = topicOf(category)
      const [scope] = scopesOfCategory(category)
      if (scope === undefined) throw new Error(`${category} has no scope.`)
      const without = await clientWith(scopesWithout(scope))
      expectRefused(await without.get(`/events/manifest?topic=${topic}`), scope)
      const { items } = (await without.get('/events/manifest')).body
      const others = MANIFEST_CATEGORIES.map(topicOf).filter(name => name !== topic)
      expect(items.map((item: { topic: string }) => item.topic)).to.deep.equal(others)
    })

  it('is needed of an API key as well', async () => {
    const issued = await client.post('/api-keys', {
      name: 'facts',
      scopes: ['events:read', 'exports:read', 'orders:read'],
    })
    const key = { 'x-api-key': issued.body.secret }
    const bare = clientOf(service.api)
    const { items } = (await bare.get('/events?limit=100', key)).body
    expect([...new Set(items.map(({ type }: { type: string }) => type))]).to.have.members([
      'order.created',
      'export.completed',
    ])
    expectRefused(await bare.get(`/exports/${exported.get('journal_entries')}/content`, key), 'ledger:read')
    expect((await bare.get(`/exports/${exported.get('orders')}/content`, key)).status).to.equal(200)
  })

  it('ends downloads and streams when it is taken from a subject, and a cursor goes on without it', async () => {
    const token = await service.token({ tenant, subject: 'leaver' })
    const leaver = clientOf(service.api, token)
    const { next_cursor } = (await leaver.get('/events?limit=1')).body.page
    const response = await retryingFetch(`${service.api}/events`, {
      headers: { authorization: `Bearer ${token}`, accept: SSE },
    })
    const text = response.text()
    const scope = ['--subject', 'leaver', '--scope', 'orders:read', '--reason', 'a test', '--json']
    expect((await ledger(['tenants', 'revoke-scope', tenant, ...scope])).code).to.equal(0)
    const path = `/exports/${exported.get('orders')}/content`
    await takesEffect(async () => (await leaver.get(path)).body?.code === 'insufficient_scope', IN_EFFECT_WITHIN_MS)
    expect(await text).to.match(/\n: ended: insufficient_scope\n\n$/)
    const created = await client.post('/orders', anOrder())
    const fresh = { 'if-min-position': created.headers.get('ledger-position') ?? '' }
    await eventually(async () => (await client.get('/events?type=order.created', fresh)).body.items.length === 2)
    const page = await leaver.get(`/events?cursor=${encodeURIComponent(next_cursor)}`)
    const types = page.body.items.map(({ type }: { type: string }) => type)
    expect(page.status).to.equal(200)
    expect(types).to.include('invoice.paid').and.not.include('order.created')
  })
})
