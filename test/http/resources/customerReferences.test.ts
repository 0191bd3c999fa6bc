import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { randomId } from '../../../src/lib/identifiers.ts'
import { createPersonalTexts } from '../../../src/personalTexts/personalTexts.ts'
import { realWorld } from '../../../src/lib/clockAndRandomness.ts'
import { type Answer, anOrder, type Client, clientOf, isReplay, newKey, recordOf } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { askFor, download, ended, fetched } from '../../support/exportSteps.ts'
import { writtenBy } from '../../support/service.ts'
import { switchable } from '../../support/switchableDatabase.ts'
import { usePersonalTexts } from './personalTextFixtures.ts'

const TENANT = 'customer-references'
const MERGE_PATCH = 'application/merge-patch+json'
const TOKEN = /^prs_[0-9A-HJKMNP-TV-Z]{26}$/

describe('the customer reference of an order', () => {
  const { parts, startProcess, eventsOf, erase } = usePersonalTexts(TENANT, 'customer_reference')
  let { service, store, database, switched } = parts
  let client: Client
  before(async () => {
    ;({ service, store, database, switched } = parts)
    client = clientOf((await startProcess()).api)
  })

  const aReference = (): string => `Jane Doe ${randomUUID()}`
  const create = (customer_reference: string | null, key?: string): Promise<Answer> =>
    client.post('/orders', { ...anOrder(), customer_reference }, key === undefined ? {} : { 'idempotency-key': key })
  const orderEvents = (id: string) => eventsOf(`order-${id}`)
  const tokenOf = async (id: string): Promise<unknown> => (await orderEvents(id))[0]?.data['customer_reference']
  const shown = async (id: string): Promise<unknown> => (await client.get(`/orders/${id}`)).body.customer_reference
  const untilErased = (id: string) => eventually(async () => (await shown(id)) === null)

  it('is shown to readers, and in no event: they have a token, equal for equal references', async () => {
    const text = aReference()
    const [first, second] = [await create(text, newKey()), await create(text)]
    expect([first.status, first.body.customer_reference]).to.deep.equal([201, text])
    const stored = [...(await orderEvents(first.body.id)), ...(await orderEvents(second.body.id))]
    expect(JSON.stringify(stored.map(({ data }) => data))).not.to.include(text)
    expect(await tokenOf(first.body.id)).to.match(TOKEN)
    expect(await tokenOf(second.body.id)).to.equal(await tokenOf(first.body.id))
    expect((await client.get(`/orders/${first.body.id}`)).text).to.equal(first.text)
    const history = await client.get(`/orders/${first.body.id}/history`)
    expect(history.body.items[0].data.customer_reference).to.equal(text)
    const position = second.headers.get('ledger-position') ?? ''
    const list = await client.get('/orders?limit=100', { 'if-min-position': position, prefer: 'wait=9' })
    const texts = new Map(list.body.items.map((item: Answer['body']) => [item.id, item.customer_reference]))
    expect([texts.get(first.body.id), texts.get(second.body.id)]).to.deep.equal([text, text])
  })

  it('has another token for another tenant', async () => {
    const text = aReference()
    const other = clientOf(service.api, await service.token({ tenant: 'other-references' }))
    const [mine, theirs] = [await create(text), await other.post('/orders', { ...anOrder(), customer_reference: text })]
    expect(await tokenOf(theirs.body.id)).to.not.equal(await tokenOf(mine.body.id))
    await erase(text)
    await untilErased(mine.body.id)
    expect((await other.get(`/orders/${theirs.body.id}`)).body.customer_reference).to.equal(text)
  })

  it('costs one statement when an order is created, and none without a reference', async () => {
    let statements = () => 0
    const timeless = await startProcess({
      database: real => {
        const { database: counting, state } = switchable(real)
        statements = () => state.statements
        return counting
      },
      // Time stands still, because a text is used without another statement for a while only.
      services: usual => {
        const still = { ...usual.ledger, world: { ...usual.ledger.world, monotonicMs: () => 0 } }
        return { ...usual, personalTexts: createPersonalTexts(usual.database.sql, still) }
      },
    })
    const through = clientOf(timeless.api)
    const keyed = () => ({ 'idempotency-key': newKey() })
    await through.post('/orders', anOrder(), keyed())
    expect(statements()).to.equal(0)
    await through.post('/orders', { ...anOrder(), customer_reference: aReference() }, keyed())
    expect(statements()).to.equal(1)
  })

  it('has one token however many requests bring it at once', async () => {
    const text = aReference()
    const answers = await Promise.all(Array.from({ length: 20 }, () => create(text)))
    expect(answers.map(({ status, body }) => [status, body.customer_reference])).to.deep.equal(
      answers.map(() => [201, text]),
    )
    expect(new Set(await Promise.all(answers.map(({ body }) => tokenOf(body.id)))).size).to.equal(1)
  })

  it('is changed by a patch, and one that changes nothing is no event', async () => {
    const [text, next] = [aReference(), aReference()]
    const created = await create(text)
    const path = `/orders/${created.body.id}`
    const patch = (body: object, etag: string | null) =>
      client.request('PATCH', path, { body, headers: { 'content-type': MERGE_PATCH, 'if-match': etag ?? '' } })
    const same = await patch({ customer_reference: text }, created.headers.get('etag'))
    expect([same.status, same.text, same.headers.get('etag')]).to.deep.equal([
      200,
      created.text,
      created.headers.get('etag'),
    ])
    const changed = await patch({ customer_reference: next }, created.headers.get('etag'))
    expect(changed.body.customer_reference).to.equal(next)
    expect(JSON.stringify((await orderEvents(created.body.id)).map(({ data }) => data))).not.to.include(next)
    expect((await client.get(`${path}?as_of=${created.body.created_at}`)).text).to.equal(created.text)
    expect((await patch({ customer_reference: null }, changed.headers.get('etag'))).body.customer_reference).to.equal(
      null,
    )
  })

  describe('of a patch that is refused is not stored', () => {
    const isStored = async (text: string) =>
      (await database.sql('select token from personal_texts where text = $1', [text])).length > 0
    const patch = (by: Client, id: string, customer_reference: string, ifMatch = '*') =>
      by.request('PATCH', `/orders/${id}`, {
        body: { customer_reference },
        headers: { 'content-type': MERGE_PATCH, 'if-match': ifMatch },
      })

    it('by If-Match', async () => {
      const next = aReference()
      const created = await create(aReference())
      const refused = await patch(client, created.body.id, next, '"7.2026-11-01"')
      expect([refused.status, refused.headers.get('etag')]).to.deep.equal([412, created.headers.get('etag')])
      expect(await isStored(next)).to.equal(false)
    })

    it('by the state of the order', async () => {
      const next = aReference()
      const { id } = (await create(null)).body
      await client.post(`/orders/${id}:cancel`, {}, { 'if-match': '*' })
      const refused = await patch(client, id, next)
      expect([refused.status, refused.body.code]).to.deep.equal([409, 'order_state_conflict'])
      expect(await isStored(next)).to.equal(false)
    })

    it('by the number of its changes, and one that changes nothing is not refused', async () => {
      const [text, next] = [aReference(), aReference()]
      const { id } = (await create(text)).body
      const full = await startProcess({
        services: usual => ({ ...usual, ledger: { ...usual.ledger, changesMax: 1 } }),
      })
      const refused = await patch(clientOf(full.api), id, next)
      expect([refused.status, refused.body.code]).to.deep.equal([409, 'too_many_changes'])
      expect(await isStored(next)).to.equal(false)
      expect((await patch(clientOf(full.api), id, text)).status).to.equal(200)
    })
  })

  describe('after its erasure', () => {
    it('is null for every reader, under another ETag, and a repeated erasure erases nothing', async () => {
      const text = aReference()
      const key = newKey()
      const created = await create(text, key)
      const { id } = created.body
      const etag = created.headers.get('etag') ?? ''
      const token = await tokenOf(id)
      const before = await orderEvents(id)
      expect(await erase(text)).to.deep.equal({ erased: [token], erased_before: [] })
      expect(await erase(text)).to.deep.equal({ erased: [], erased_before: [token] })
      await untilErased(id)
      const read = await client.get(`/orders/${id}`, { 'if-none-match': etag })
      expect([read.status, read.body]).to.deep.equal([200, { ...created.body, customer_reference: null }])
      expect(read.headers.get('etag')).to.not.equal(etag)
      const current = { 'if-none-match': read.headers.get('etag') ?? '' }
      expect((await client.get(`/orders/${id}`, current)).status).to.equal(304)
      const position = created.headers.get('ledger-position') ?? ''
      const list = await client.get('/orders?limit=100', { 'if-min-position': position, prefer: 'wait=9' })
      expect(list.body.items.find((item: Answer['body']) => item.id === id)).to.deep.equal(read.body)
      const history = await client.get(`/orders/${id}/history`)
      expect(history.body.items[0].data.customer_reference).to.equal(null)
      expect(await orderEvents(id)).to.deep.equal(before)
      const rows = await database.sql('select * from personal_texts where token = $1', [token])
      expect(JSON.stringify(rows)).not.to.include(text)
      const replayed = await create(text, key)
      expect([replayed.status, isReplay(replayed), replayed.body]).to.deep.equal([201, true, read.body])
      const kept = await database.sql('select token from personal_texts where text = $1', [text])
      expect(kept, 'a repetition does not bring the text back').to.deep.equal([])
    })

    it('leaves the books as they are, without the name of the customer', async () => {
      const text = aReference()
      const created = await create(text)
      const invoice = await client.post('/invoices', { order_id: created.body.id })
      const ifMatch = { 'if-match': invoice.headers.get('etag') ?? '' }
      const approved = await client.post(`/invoices/${invoice.body.id}:approve`, {}, ifMatch)
      const upTo = { 'if-min-position': approved.headers.get('ledger-position') ?? '', prefer: 'wait=9' }
      const filtered = `/accounts?customer_reference=${encodeURIComponent(text)}`
      const items = (await client.get(filtered, upTo)).body.items
      expect(items.map((account: Answer['body']) => account.customer_reference)).to.deep.equal([text])
      const path = `/accounts/${items[0].code}`
      const before = await client.get(path, upTo)
      expect(before.body).to.deep.equal(items[0])
      const balance = await client.get('/trial-balance', upTo)
      await erase(text)
      await eventually(async () => (await client.get(path, upTo)).body.customer_reference === null)
      const after = await client.get(path, upTo)
      expect(after.body).to.deep.equal({ ...before.body, customer_reference: null })
      expect(after.headers.get('etag')).to.not.equal(before.headers.get('etag'))
      expect((await client.get(filtered, upTo)).body.items).to.deep.equal([])
      const token = encodeURIComponent(String(await tokenOf(created.body.id)))
      expect((await client.get(`/accounts?customer_reference=${token}`, upTo)).body.items).to.deep.equal([])
      const withoutText = balance.body.items.map((item: Answer['body']) =>
        item.customer_reference === text ? { ...item, customer_reference: null } : item,
      )
      expect((await client.get('/trial-balance', upTo)).body.items).to.deep.equal(withoutText)
    })

    it('has the new ETag in If-Match and in the 412 of the old one', async () => {
      const text = aReference()
      const created = await create(text)
      const path = `/orders/${created.body.id}`
      await erase(text)
      await untilErased(created.body.id)
      const etag = (await client.get(path)).headers.get('etag') ?? ''
      const cancel = (ifMatch: string | null) => client.post(`${path}:cancel`, {}, { 'if-match': ifMatch ?? '' })
      const stale = await cancel(created.headers.get('etag'))
      expect([stale.status, stale.headers.get('etag')]).to.deep.equal([412, etag])
      const cancelled = await cancel(etag)
      expect([cancelled.status, cancelled.body.customer_reference]).to.deep.equal([200, null])
    })

    it('is shown again in orders that bring it anew, and stays erased in the earlier ones', async () => {
      const text = aReference()
      const earlier = await create(text)
      await erase(text)
      await untilErased(earlier.body.id)
      const later = await create(text)
      expect([later.body.customer_reference, await shown(later.body.id)]).to.deep.equal([text, text])
      expect(await tokenOf(later.body.id)).to.not.equal(await tokenOf(earlier.body.id))
      expect(await shown(earlier.body.id)).to.equal(null)
      const erasure = await erase(text)
      expect(erasure.erased_before).to.deep.equal([await tokenOf(earlier.body.id)])
      await untilErased(later.body.id)
    })

    it('is in no file of an export: finished ones are expired and deleted, later ones have null', async () => {
      const text = aReference()
      const owner = clientOf(service.api, await service.token({ tenant: TENANT }))
      const created = await create(text)
      const before = await askFor(owner, { resource: 'orders', format: 'jsonl' })
      const { rows } = await fetched(service, owner, { id: before, tenant: TENANT })
      const rowOf = (actual: readonly object[]) => actual.find(row => Reflect.get(row, 'id') === created.body.id)
      expect(rowOf(rows)).to.include({ customer_reference: text })
      await erase(text)
      expect((await download(service, before, TENANT)).status).to.equal(410)
      expect((await owner.get(`/exports/${before}/manifest`)).body.code).to.equal('export_expired')
      await eventually(async () => (await owner.get(`/operations/${before}`)).body.state === 'expired')
      await eventually(async () => {
        const chunks = await database.sql('select 1 from export_chunks where operation_id = $1', [before])
        return chunks.length === 0
      })
      const after = await fetched(service, owner, {
        id: await askFor(owner, { resource: 'orders', format: 'jsonl' }),
        tenant: TENANT,
      })
      expect(rowOf(after.rows)).to.include({ customer_reference: null })
    })

    it('leaves files without such texts as they are', async () => {
      const text = aReference()
      await create(text)
      const owner = clientOf(service.api, await service.token({ tenant: TENANT }))
      const id = await askFor(owner, { resource: 'invoices', format: 'csv' })
      await ended(owner, id)
      await erase(text)
      expect((await download(service, id, TENANT)).status).to.equal(200)
    })
  })

  describe('while Postgres does not answer', () => {
    it('is a 503 at the first request of a key, which has no effect, and the key is free', async () => {
      const [text, key] = [aReference(), newKey()]
      const after = await store.head()
      switched.state.isDown = true
      const refused = await create(text, key)
      expect([refused.status, refused.body.code]).to.deep.equal([503, 'dependency_unavailable'])
      const unkeyed = await create(text)
      expect([unkeyed.status, unkeyed.body.code]).to.deep.equal([503, 'dependency_unavailable'])
      expect(await writtenBy(store, { after, answers: [refused, unkeyed] })).to.deep.equal([])
      switched.state.isDown = false
      const created = await create(text, key)
      expect([created.status, isReplay(created)]).to.deep.equal([201, false])
    })

    it('is no 503 for a key that has created an order: the effect is unknown to the caller', async () => {
      const [text, key] = [aReference(), newKey()]
      const created = await create(text, key)
      // The other process has not read the text before.
      const other = await startProcess()
      try {
        switched.state.isDown = true
        const body = { ...anOrder(), customer_reference: text }
        const repeated = await clientOf(other.api).post('/orders', body, { 'idempotency-key': key })
        expect([repeated.status, repeated.body.code]).to.deep.equal([504, 'deadline_exceeded'])
        const reused = await clientOf(other.api).post(
          '/orders',
          { ...body, currency: 'EUR' },
          { 'idempotency-key': key },
        )
        expect([reused.status, reused.body.code]).to.deep.equal([422, 'idempotency_key_reused'])
      } finally {
        switched.state.isDown = false
      }
      expect(recordOf(await create(text, key))).to.deep.equal(recordOf(created))
    })

    it('does not prevent an order without one', async () => {
      switched.state.isDown = true
      expect((await create(null, newKey())).status).to.equal(201)
    })

    it('does not prevent the repetition of a keyed export', async () => {
      const key = newKey()
      const ask = () => client.post('/exports', { resource: 'orders', format: 'csv' }, { 'idempotency-key': key })
      const first = await ask()
      switched.state.isDown = true
      const repeated = await ask()
      expect([repeated.status, repeated.text, isReplay(repeated)]).to.deep.equal([202, first.text, true])
      const other = await client.post(
        '/exports',
        { resource: 'orders', format: 'csv' },
        { 'idempotency-key': newKey() },
      )
      expect(other.status).to.equal(503)
    })
  })

  it('is null if its row was lost, as after an erasure', async () => {
    const created = await create(aReference())
    await database.sql('delete from personal_texts where token = $1', [await tokenOf(created.body.id)])
    await untilErased(created.body.id)
    expect(randomId('prs', realWorld())).to.match(TOKEN)
  })
})
