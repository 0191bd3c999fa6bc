import { expect } from 'chai'
import { openEventStore } from '../../../src/adapters/eventstoredb/eventStore.ts'
import { routes } from '../../../src/http/index.ts'
import { streamWithId } from '../../../src/commands/entities.ts'
import type { EventStore, StoredEvent } from '../../../src/ports.ts'
import { type Answer, aPayment, approvedInvoice, type Client, clientOf, newKey, pay } from '../../support/client.ts'
import { sharedService, type TestService, writtenBy } from '../../support/service.ts'
import { TENANT as OPERATORS } from '../../support/serviceVariants.ts'
import { examples } from '../requestExamples.ts'

const TENANT = 'audited'
const CHOSEN = 'chosen-by-a-stranger'
const CHOSEN_TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
type Row = Readonly<Record<string, unknown>>

describe('audit records', () => {
  let service: TestService
  let client: Client
  let store: EventStore
  let operator: Client

  const as = async (who: object): Promise<Client> =>
    clientOf(service.api, await service.token({ tenant: TENANT, ...who }))
  /** The records of the request that got this answer. */
  const recordsOf = async (answer: Answer, from: Client = client) => {
    const correlation = answer.headers.get('x-correlation-id') ?? ''
    const head = await store.head()
    const path = `/audit-records?correlation_id=${correlation}`
    const { status, body } = await from.get(path, { 'if-min-position': String(head), prefer: 'wait=10' })
    expect(status).to.equal(200)
    return body.items
  }
  const onlyRecordOf = async (answer: Answer) => {
    const records = await recordsOf(answer)
    expect(records, answer.text).to.have.length(1)
    return records[0]
  }
  const draft = async (amount = 900, currency = 'USD') => {
    const lines = [{ sku: 'tea', quantity: 1, unit_amount: amount }]
    const order = await client.post('/orders', { currency, lines })
    const invoice = await client.post('/invoices', { order_id: order.body.id })
    return { id: String(invoice.body.id), ifMatch: { 'if-match': invoice.headers.get('etag') ?? '' } }
  }
  const paid = async () => {
    const { invoiceId } = await approvedInvoice(client)
    return { invoiceId, answer: await pay(client, aPayment(invoiceId)) }
  }

  before(async () => {
    service = await sharedService()
    client = await as({})
    operator = await as({ tenant: OPERATORS })
    store = openEventStore({ connectionString: service.addresses.event_store })
  })
  after(() => store.close())

  it('have subject, operation, check and time', async () => {
    const { id, ifMatch } = await draft()
    const approver = await as({ subject: 'auditable', user: true })
    const approved = await approver.post(`/invoices/${id}:approve`, {}, ifMatch)
    const { id: eventId, created_at, position, ...record } = await onlyRecordOf(approved)
    expect(record).to.deep.equal({
      tenant_id: TENANT,
      decision: 'granted',
      operation: 'approve_invoice',
      check: 'policy',
      code: null,
      resource: id,
      subject: 'auditable',
      client: 'ledger-cli',
      authority: 'invoice:approve',
      correlation_id: approved.headers.get('x-correlation-id'),
      count: 1,
      reason: null,
    })
    expect(created_at).to.equal(approved.body.approved_at)
    expect(position).to.equal(approved.headers.get('ledger-position'))
    expect(eventId).to.match(/^[0-9a-f-]{36}$/)
  })

  for (const { operationId: operation, method, path, audited } of routes)
    if (audited)
      it(`are written for a granted ${operation}`, async () => {
        const caller = /^\/(projections|installation)/.test(path) ? operator : client
        const example = await examples[operation]?.(caller)
        if (example === undefined) throw new Error(`There is no example of ${operation}.`)
        const { path: pathOfExample, body, headers } = example
        const answer = await caller.request(method, pathOfExample, {
          ...(body ? { body } : {}),
          ...(headers ? { headers } : {}),
        })
        expect(answer.status, answer.text).to.be.within(200, 299)
        const [record, ...others] = await recordsOf(answer, caller)
        expect(others, answer.text).to.deep.equal([])
        expect(record).to.include({ decision: 'granted', operation, code: null, subject: 'tester' })
      })

  it('can name the owner of every resource of an audited operation', async () => {
    for (const { operationId, path, audited } of routes) {
      // Read models belong to the installation, and have no owner.
      const isOwned = audited !== undefined && audited !== 'created' && audited !== 'none'
      if (!isOwned || path.startsWith('/projections')) continue
      const example = await examples[operationId]?.(client)
      const named = audited === 'path' ? example?.path : Reflect.get(example?.body ?? {}, audited.bodyMember)
      const [id = ''] = /\b[a-z]{2,3}_[0-9A-Z]{26}\b/.exec(String(named)) ?? []
      expect(streamWithId(id), operationId).to.not.equal(undefined)
    }
  })

  it('are written once for a deferred payment, and not for its settlement', async () => {
    const { invoiceId } = await approvedInvoice(client)
    const answer = await pay(client, aPayment(invoiceId, { settlement: 'deferred' }))
    const ifMatch = { 'if-match': answer.headers.get('etag') ?? '' }
    const settled = await client.post(`/payments/${answer.body.id}:settle`, {}, ifMatch)
    expect(await onlyRecordOf(answer)).to.include({ decision: 'granted', operation: 'create_payment' })
    expect(await recordsOf(settled)).to.deep.equal([])
  })

  type Denied = readonly [what: string, check: string, code: string, make: () => Promise<Answer>]
  const denials: readonly Denied[] = [
    [
      'a scope that the caller lacks',
      'scope',
      'insufficient_scope',
      async () => (await as({ scopes: ['orders:read'] })).post('/exports', { resource: 'orders', format: 'csv' }),
    ],
    [
      'another tenant’s invoice',
      'tenant',
      'resource_not_found',
      async () => {
        const other = clientOf(service.api, await service.token({ tenant: 'audited-elsewhere' }))
        const { invoiceId } = await approvedInvoice(other)
        return client.post(`/invoices/${invoiceId}:approve`, {}, { 'if-match': '"1"' })
      },
    ],
    [
      'a payment of another tenant’s invoice',
      'tenant',
      'resource_not_found',
      async () => {
        const other = clientOf(service.api, await service.token({ tenant: 'audited-elsewhere' }))
        return pay(client, aPayment((await approvedInvoice(other)).invoiceId))
      },
    ],
    [
      'an invoice that is approved already',
      'state',
      'invoice_state_conflict',
      async () => {
        const { invoiceId, etag } = await approvedInvoice(client)
        return client.post(`/invoices/${invoiceId}:approve`, {}, { 'if-match': etag })
      },
    ],
    [
      'a payment of more than is due',
      'state',
      'payment_exceeds_due',
      async () => pay(client, aPayment((await approvedInvoice(client)).invoiceId, { amount: 901 })),
    ],
    [
      'a refund of more than was paid',
      'state',
      'payment_state_conflict',
      async () => {
        const { body } = (await paid()).answer
        const refund = { amount: 101, reason: 'broken' }
        return client.post(`/payments/${body.id}:refund`, refund, { 'idempotency-key': newKey() })
      },
    ],
  ]
  for (const [what, check, code, make] of denials)
    it(`name the check that denied ${what}`, async () => {
      const answer = await make()
      expect(answer.body.code).to.equal(code)
      expect(await onlyRecordOf(answer)).to.include({ decision: 'denied', check, code })
    })

  describe('of guessed ids', () => {
    const guess = (resource: string, headers = {}): Promise<Answer> =>
      resource.startsWith('inv_')
        ? client.post(`/invoices/${resource}:approve`, {}, { 'if-match': '"1"', ...headers })
        : client.post(`/payments/${resource}:refund`, { reason: 'mine?' }, { 'idempotency-key': newKey(), ...headers })
    /** The stored events at these positions, in the order of the log. */
    const deniedAt = async (positions: readonly bigint[]): Promise<StoredEvent[]> => {
      const actual: StoredEvent[] = []
      for await (const item of store.subscribe({ after: 'start', signal: new AbortController().signal })) {
        if (item.kind === 'caught_up') break
        if (item.kind === 'event' && positions.includes(item.event.position)) actual.push(item.event)
      }
      return actual
    }
    /** A record without the members that differ from request to request. */
    const withoutRequest = ({
      id: _,
      created_at: _at,
      position: _p,
      correlation_id: _c,
      resource: _r,
      ...record
    }: Row) => record
    const kinds: Readonly<Record<string, () => Promise<readonly [Client, string]>>> = {
      invoice: async () => {
        const owner = clientOf(service.api, await service.token({ tenant: 'audited-owner' }))
        return [owner, (await approvedInvoice(owner)).invoiceId]
      },
      payment: async () => {
        const owner = clientOf(service.api, await service.token({ tenant: 'audited-owner' }))
        const { body } = await pay(owner, aPayment((await approvedInvoice(owner)).invoiceId))
        return [owner, String(body.id)]
      },
    }
    for (const [kind, make] of Object.entries(kinds)) {
      it(`are the same for another tenant’s ${kind} as for one that never existed`, async () => {
        const [, others] = await make()
        const [hit, miss] = [await guess(others), await guess(`${others.slice(0, 4)}${'0'.repeat(26)}`)]
        const [record, same] = [await onlyRecordOf(hit), await onlyRecordOf(miss)]
        expect(record).to.include({
          decision: 'denied',
          check: 'tenant',
          code: 'resource_not_found',
          subject: 'tester',
        })
        expect(withoutRequest(record)).to.deep.equal(withoutRequest(same))
        expect(same.resource).to.equal(`${others.slice(0, 4)}${'0'.repeat(26)}`)
      })

      it(`are visible to the owner of the ${kind}, and do not name a caller of another tenant`, async () => {
        const [owner, others] = await make()
        const chosen = {
          'x-correlation-id': `${CHOSEN}-${kind}`,
          traceparent: `00-${CHOSEN_TRACE}-00f067aa0ba902b7-01`,
        }
        const guessed = await guess(others, chosen)
        const [callers] = await recordsOf(guessed)
        expect(callers?.correlation_id).to.equal(`${CHOSEN}-${kind}`)
        expect(await recordsOf(guessed, owner), 'the caller’s correlation id finds nothing').to.deep.equal([])
        const { body } = await owner.get(`/audit-records?resource=${others}&decision=denied`)
        const records: Row[] = body.items
        expect(records).to.have.length(1)
        expect(records[0]?.correlation_id).to.match(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
        expect(records[0]).to.include({
          tenant_id: 'audited-owner',
          decision: 'denied',
          check: 'tenant',
          code: 'resource_not_found',
          resource: others,
          subject: 'another tenant',
          client: 'another tenant',
        })
        const pair = await deniedAt([callers, records[0]].map(record => BigInt(record?.position)))
        expect(pair.map(({ metadata }) => metadata?.['$causationId'])).to.deep.equal([
          records[0]?.correlation_id,
          records[0]?.correlation_id,
        ])
        expect(JSON.stringify(pair[1], (_, value) => (typeof value === 'bigint' ? `${value}` : value))).not.to.match(
          new RegExp(`${CHOSEN}|${CHOSEN_TRACE}`),
        )
      })
    }
  })

  it('are durable before the caller receives the refusal', async () => {
    const after = await store.head()
    const withoutScope = await as({ scopes: ['orders:read'] })
    const refused = await withoutScope.post('/exports', { resource: 'orders', format: 'csv' })
    expect(await writtenBy(store, { after, answers: [refused], withAuditRecords: true })).to.deep.equal([
      'AccessDenied',
    ])
  })

  it('are not written for malformed or stale requests', async () => {
    const { invoiceId } = await approvedInvoice(client)
    const after = await store.head()
    const answers = [
      await client.post(`/invoices/${invoiceId}:approve`, {}, { 'if-match': '"stale"' }),
      await client.post(`/invoices/${invoiceId}:approve`, {}),
      await client.post('/payments', { nonsense: true }, { 'idempotency-key': newKey() }),
      await clientOf(service.api).post('/payments', {}),
    ]
    expect(await writtenBy(store, { after, answers, withAuditRecords: true })).to.deep.equal([])
  })

  it('are not written again for a replay', async () => {
    const { invoiceId } = await approvedInvoice(client)
    const key = newKey()
    const first = await pay(client, aPayment(invoiceId), key)
    const again = await pay(client, aPayment(invoiceId), key)
    expect([await recordsOf(first), await recordsOf(again)].map(({ length }) => length)).to.deep.equal([1, 0])
  })

  it('are visible to their own tenant only', async () => {
    const { answer } = await paid()
    const other = clientOf(service.api, await service.token({ tenant: 'audited-elsewhere' }))
    expect(await recordsOf(answer, other)).to.deep.equal([])
  })

  it('are listed newest first, page by page, with filters', async () => {
    const subject = `lister-${newKey()}`
    const lister = await as({ subject, scopes: ['orders:read', 'audit:read'] })
    for (let index = 0; index < 5; index++) await lister.post('/exports', { resource: 'orders', format: 'csv' })
    const headers = { 'if-min-position': String(await store.head()), prefer: 'wait=10' }
    const seen: string[] = []
    let path = `/audit-records?subject=${subject}&decision=denied&limit=2`
    for (let cursor = ''; cursor !== null; ) {
      const { body } = await lister.get(cursor === '' ? path : `${path}&cursor=${cursor}`, headers)
      seen.push(...body.items.map(({ created_at }: { created_at: string }) => created_at))
      cursor = body.page.next_cursor
    }
    expect(seen).to.deep.equal(seen.toSorted().toReversed()).and.to.have.length(5)
    path = `/audit-records?subject=${subject}&decision=granted&operation=create_export`
    expect((await lister.get(path)).body.items).to.deep.equal([])
  })
})
