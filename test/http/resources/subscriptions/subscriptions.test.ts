import { expect } from 'chai'
import { PARKED_MAX } from '../../../../projections/subscriptions/queries.ts'
import { FACT_TYPES } from '../../../../streams/facts.ts'
import { changeTenantStatus } from '../../../../src/commands/tenantStatus.ts'
import { createLedger } from '../../../../src/commands/commandHandler.ts'
import { openEventStore } from '../../../../src/adapters/eventstoredb/eventStore.ts'
import { openDatabase } from '../../../../src/adapters/postgres/database.ts'
import { SCOPES } from '../../../../src/identity/principal.ts'
import type { Database, EventStore } from '../../../../src/ports.ts'
import { realWorld } from '../../../../src/lib/clockAndRandomness.ts'
import { type Answer, anOrder, type Client, clientOf, newKey } from '../../../support/client.ts'
import { eventually } from '../../../support/eventually.ts'
import { sharedService, type TestService } from '../../../support/service.ts'

/** Subscriptions over HTTP, without a broker: what is accepted, shown and refused. */

const TENANT = 'subscribers'
const aSubscription = (given: object = {}) => ({ types: ['order.created'], start: 'beginning', ...given })
const outcomeOf = ({ status, body }: Answer) => [status, body.code]

/** Recorded reasons; the last one has the text of an arbitrary error. */
const REASONS = [
  'An earlier one of its key is parked.',
  'FactTooLarge: The fact with key ord_1 is larger than topic ledger.order.v1 takes.',
  'Error: connect ECONNREFUSED 10.0.0.7:5432, password authentication failed for user "ledger"',
]

describe('subscriptions', () => {
  let service: TestService
  let client: Client
  let store: EventStore
  let database: Database

  const as = async (who: object): Promise<Client> =>
    clientOf(service.api, await service.token({ tenant: TENANT, ...who }))
  const subscribe = async (given: object = {}): Promise<string> => {
    const answer = await client.post('/subscriptions', aSubscription(given))
    expect(answer.status, answer.text).to.equal(201)
    return `/subscriptions/${answer.body.id}`
  }

  before(async () => {
    service = await sharedService()
    client = await as({})
    store = openEventStore({ connectionString: service.addresses.event_store })
    database = openDatabase({ connectionString: service.addresses.postgres })
  })
  after(async () => {
    await store.close()
    await database.close()
  })

  describe('are confirmed', () => {
    const seenOn = async (id: string) =>
      (
        await database.sql<{ seen_on: string }>(
          'select seen_on::text from subscription_creators where subscription_id = $1',
          [id],
        )
      )[0]?.seen_on
    const today = (): string => new Date().toISOString().slice(0, 10)
    type Creator = { readonly subject: string; readonly client: string }
    const note = (id: string, { subject, client: through }: Creator, daysAgo: number) =>
      database.sql(
        `insert into subscription_creators
          values ($1, $2, $3, $4, (now() at time zone 'utc')::date - $5::integer)
          on conflict (subscription_id) do update set seen_on = excluded.seen_on`,
        [id, TENANT, subject, through, daysAgo],
      )

    it('by any request of their creator through the same client, and show until when', async () => {
      const [path, other] = [await subscribe(), await subscribe()]
      const [id, otherId] = [path, other].map(text => text.split('/').at(-1) ?? '')
      await note(id ?? '', { subject: 'late', client: 'late' }, 10)
      await note(otherId ?? '', { subject: 'other', client: 'shop' }, 10)
      const dayMs = 24 * 60 * 60 * 1000
      const confirmBy = new Date(Date.parse(today()) + (90 + 1 - 10) * dayMs).toISOString()
      expect((await client.get(path)).body).to.include({ state: 'active', confirm_by: confirmBy })
      const listed = await eventually(async () => {
        const { items } = (await client.get('/subscriptions')).body
        return items.find((subscription: { id: string }) => subscription.id === otherId)
      })
      expect(listed.confirm_by).to.equal(confirmBy)
      await (await as({ subject: 'other' })).get('/orders')
      await (await as({ subject: 'late' })).get('/orders')
      await eventually(async () => (await seenOn(id ?? '')) === today())
      expect(await seenOn(otherId ?? ''), 'of another client').to.not.equal(today())
    })

    it('by :resume of anyone who may have the facts', async () => {
      const path = await subscribe()
      const id = path.split('/').at(-1) ?? ''
      await note(id, { subject: 'gone', client: 'gone' }, 200)
      expect((await client.post(`${path}:pause`, {})).status).to.equal(200)
      expect(await seenOn(id)).to.not.equal(today())
      const resumed = await client.post(`${path}:resume`, {})
      expect(resumed.body.state).to.equal('active')
      expect(await seenOn(id)).to.equal(today())
      expect(Date.parse(resumed.body.confirm_by)).to.be.above(Date.now())
    })
  })

  describe('are created', () => {
    it('with their topics, state and position', async () => {
      const body = aSubscription({
        types: ['payment.refunded', 'invoice.paid'],
        principal: 'books',
        metadata: { a: 'b' },
      })
      const { status, headers, body: made } = await client.post('/subscriptions', body)
      const { id, created_at, ...rest } = made
      expect(status).to.equal(201)
      expect(headers.get('location')).to.equal(`/subscriptions/${id}`)
      expect(headers.get('etag')).to.match(/^"0\./)
      expect(rest).to.deep.equal({
        state: 'active',
        version: 0,
        tenant_id: TENANT,
        updated_at: created_at,
        created_by: 'tester',
        metadata: { a: 'b' },
        types: ['invoice.paid', 'payment.refunded'],
        topic: `ledger.subscription.${id}`,
        dead_letter_topic: `ledger.subscription.${id}.dlq`,
        principal: 'books',
        acl: 'pending',
        position: '0',
        lag: null,
        parked: 0,
        stop_reason: null,
        confirm_by: null,
      })
    })

    it('once per key, with the same response to the byte, also after changes', async () => {
      const key = { 'idempotency-key': newKey() }
      const first = await client.post('/subscriptions', aSubscription(), key)
      await client.post('/orders', anOrder())
      await client.post(`/subscriptions/${first.body.id}:pause`, {})
      const again = await client.post('/subscriptions', aSubscription(), key)
      expect([again.status, again.text]).to.deep.equal([201, first.text])
      expect(again.headers.get('etag')).to.equal(first.headers.get('etag'))
      expect(again.headers.get('idempotent-replayed')).to.equal('true')
      const other = await client.post('/subscriptions', aSubscription({ start: 'now' }), key)
      expect(outcomeOf(other)).to.deep.equal([422, 'idempotency_key_reused'])
      const outcome = await client.get(`/idempotency-keys/${key['idempotency-key']}?operation=create_subscription`)
      expect(outcome.body.links.result).to.equal(`/subscriptions/${first.body.id}`)
    })

    for (const [what, given] of [
      ['no type', { types: [] }],
      ['a type twice', { types: ['invoice.paid', 'invoice.paid'] }],
      ['a type that does not exist', { types: ['invoice.lost'] }],
      ['the manifests, which belong to no tenant', { types: ['ledger.manifest'] }],
      ['an unknown word as its start', { start: 'yesterday' }],
      ['two starts', { start: { position: '1', time: '2026-01-01T00:00:00Z' } }],
      ['a malformed position', { start: { position: '-1' } }],
      ['a malformed time', { start: { time: 'noon' } }],
      ['a wildcard as principal', { principal: '*' }],
      ['a principal with a prefix', { principal: 'User:books' }],
      ['an unknown member', { tenant: 'acme' }],
    ] as const)
      it(`not with ${what}`, async () =>
        expect(outcomeOf(await client.post('/subscriptions', aSubscription(given)))).to.deep.equal([
          400,
          'validation_failed',
        ]))

    it('not without a start', async () =>
      expect(outcomeOf(await client.post('/subscriptions', { types: ['invoice.paid'] }))).to.deep.equal([
        400,
        'validation_failed',
      ]))
  })

  describe('need the read scope of every type', () => {
    for (const type of FACT_TYPES.filter(name => name !== 'ledger.manifest')) {
      const scope = `${type.split('.')[0]}s:read`
      it(`${scope} for ${type}`, async () => {
        const body = aSubscription({ types: [type] })
        const without = await as({ scopes: SCOPES.filter(one => one !== scope) })
        const refused = await without.post('/subscriptions', body)
        expect(outcomeOf(refused)).to.deep.equal([403, 'insufficient_scope'])
        expect(refused.body.detail).to.contain(scope)
        const only = await as({ scopes: ['events:subscribe', scope] })
        expect((await only.post('/subscriptions', body)).status).to.equal(201)
      })
    }

    it('also of the caller who resumes or replays it', async () => {
      const path = await subscribe()
      const other = await as({ scopes: ['events:subscribe', 'invoices:read'], subject: 'other' })
      expect((await other.post(`${path}:pause`, {})).status).to.equal(200)
      expect(outcomeOf(await other.post(`${path}:resume`, {}))).to.deep.equal([403, 'insufficient_scope'])
      expect(outcomeOf(await other.post(`${path}:replay`, { from: 'beginning' }))).to.deep.equal([
        403,
        'insufficient_scope',
      ])
      expect((await client.get(path)).body.state).to.equal('paused')
    })

    it('also of its creator, when another caller replays it', async () => {
      const tenant = 'subscribers-revoked'
      const [creator, other] = [await as({ tenant, subject: 'creator' }), await as({ tenant, subject: 'other' })]
      const { id } = (await creator.post('/subscriptions', aSubscription())).body
      const revoked = { subject: 'creator', scope: 'orders:read', reason: 'a test' }
      const context = {
        tenant,
        subject: 'op',
        client: 'op',
        authority: 'op',
        correlationId: newKey(),
        commandId: newKey(),
        at: new Date().toISOString(),
      }
      await changeTenantStatus(createLedger(store, realWorld()), { type: 'RevokeScope', ...revoked }, context)
      const replay = () => other.post(`/subscriptions/${id}:replay`, { from: 'beginning' })
      const refused = await eventually(async () => {
        const answer = await replay()
        return answer.status === 403 && answer
      })
      expect(outcomeOf(refused)).to.deep.equal([403, 'policy_denied'])
      expect(outcomeOf(await creator.post('/subscriptions', aSubscription()))).to.deep.equal([
        403,
        'insufficient_scope',
      ])
    })
  })

  it('are paused and resumed any number of times', async () => {
    const path = await subscribe()
    for (const [verb, state, version] of [
      ['pause', 'paused', 1],
      ['pause', 'paused', 1],
      ['resume', 'active', 2],
      ['resume', 'active', 2],
    ] as const) {
      const { status, body, headers } = await client.post(`${path}:${verb}`, {})
      expect([status, body.state, body.version]).to.deep.equal([200, state, version])
      expect(headers.get('ledger-position')).to.match(/^\d+$/)
    }
  })

  it('show their lag, and change their entity tag with it', async () => {
    const path = await subscribe({ start: 'now' })
    const before = await client.get(path)
    expect(before.body.lag).to.equal(0)
    const etag = before.headers.get('etag') ?? ''
    expect((await client.get(path, { 'if-none-match': etag })).status).to.equal(304)
    await client.post('/orders', anOrder())
    await eventually(async () => (await client.get(path)).body.lag === 1)
    const after = await client.get(path, { 'if-none-match': etag })
    expect([after.status, after.body.lag, after.body.version]).to.deep.equal([200, 1, 0])
  })

  describe('are replayed', () => {
    it('by a separate operation for each replay', async () => {
      const path = await subscribe()
      await client.post('/orders', anOrder())
      const first = await client.post(`${path}:replay`, { from: 'beginning' })
      expect([first.status, first.body.kind, first.body.state]).to.deep.equal([202, 'replay_subscription', 'pending'])
      expect(first.headers.get('location')).to.equal(`/operations/${first.body.id}`)
      const second = await client.post(`${path}:replay`, { from: { time: '2026-01-01T00:00:00Z' } })
      expect(second.body.id).to.not.equal(first.body.id)
      const stateOf = async (id: string) => (await client.get(`/operations/${id}`)).body.state
      expect([await stateOf(first.body.id), await stateOf(second.body.id)]).to.deep.equal(['cancelled', 'pending'])
      const subscriber = await as({ scopes: ['events:subscribe', 'orders:read'] })
      expect((await subscriber.get(`/operations/${second.body.id}`)).status).to.equal(200)
      const payer = await as({ scopes: ['payments:read'] })
      expect(outcomeOf(await payer.get(`/operations/${second.body.id}`))).to.deep.equal([403, 'insufficient_scope'])
    })

    it('once per key', async () => {
      const path = await subscribe()
      const key = { 'idempotency-key': newKey() }
      const first = await client.post(`${path}:replay`, { from: 'beginning' }, key)
      const again = await client.post(`${path}:replay`, { from: 'beginning' }, key)
      expect([again.status, again.text]).to.deep.equal([202, first.text])
      expect(again.headers.get('etag')).to.equal(first.headers.get('etag'))
      expect((await client.get(path)).body.version).to.equal(1)
      const other = await client.post(`${path}:replay`, { from: { position: '7' } }, key)
      expect(outcomeOf(other)).to.deep.equal([422, 'idempotency_key_reused'])
    })

    it('one at a time: one key cannot replay two of them', async () => {
      const paths = [await subscribe(), await subscribe()]
      const key = { 'idempotency-key': newKey() }
      const replay = (path: string) => client.post(`${path}:replay`, { from: 'beginning' }, key)
      const answers = await Promise.all(paths.map(replay))
      expect(answers.map(({ status }) => status)).to.have.members([202, 422])
      const lost = answers.findIndex(({ status }) => status === 422)
      expect((await client.get(paths[lost] ?? '')).body.version).to.equal(0)
    })

    it('never from the present position', async () =>
      expect(outcomeOf(await client.post(`${await subscribe()}:replay`, { from: 'now' }))).to.deep.equal([
        400,
        'validation_failed',
      ]))

    it('with an operation that is 404 for other tenants, and for other numbers', async () => {
      const { body } = await client.post(`${await subscribe()}:replay`, { from: 'beginning' })
      const otherTenant = await as({ tenant: 'subscribers-other' })
      expect(outcomeOf(await otherTenant.get(`/operations/${body.id}`))).to.deep.equal([404, 'resource_not_found'])
      for (const digits of ['0000', '0002', '0010'])
        expect(outcomeOf(await client.get(`/operations/${body.id.slice(0, -4)}${digits}`))).to.deep.equal([
          404,
          'resource_not_found',
        ])
    })
  })

  it('are listed newest first, without deleted ones', async () => {
    const mine = await as({ tenant: 'subscribers-listed' })
    const ids: string[] = []
    for (let n = 0; n < 3; n++) ids.push((await mine.post('/subscriptions', aSubscription())).body.id)
    await mine.post(`/subscriptions/${ids[2]}:pause`, {})
    const { headers } = await mine.request('DELETE', `/subscriptions/${ids[0]}`)
    const fresh = { 'if-min-position': headers.get('ledger-position') ?? '', prefer: 'wait=10' }
    const list = async (query: string) => (await mine.get(`/subscriptions${query}`, fresh)).body
    expect((await list('')).items.map(({ id }: { id: string }) => id)).to.deep.equal([ids[2], ids[1]])
    expect((await list('?state=active')).items.map(({ id }: { id: string }) => id)).to.deep.equal([ids[1]])
    const [shown] = (await list('?state=paused')).items
    expect(shown).to.deep.equal((await mine.get(`/subscriptions/${ids[2]}`)).body)
  })

  it('are deleted once', async () => {
    const path = await subscribe()
    expect((await client.request('DELETE', path)).status).to.equal(204)
    for (const answer of [
      await client.request('DELETE', path),
      await client.get(path),
      await client.post(`${path}:resume`, {}),
      await client.post(`${path}:replay`, { from: 'beginning' }),
      await client.get(`${path}/dead-letters`),
    ])
      expect(outcomeOf(answer)).to.deep.equal([404, 'resource_not_found'])
  })

  it('have their dead letters listed, page by page', async () => {
    const path = await subscribe()
    const id = path.split('/')[2]
    for (let position = 1; position <= 5; position++)
      await database.sql(
        `insert into parked_facts (delivery, position, key, stream, revision, event_id, type, tenant_id, reason, attempts,
          first_failed_at) values ($1, $2, 'ord_1', 'order-ord_1', 0, $3, 'order.created', $4, $5, 10, now())`,
        [id, position, `00000000-0000-8000-a000-00000000000${position}`, TENANT, REASONS[position % 3]],
      )
    expect((await client.get(path)).body.parked).to.equal(5)
    await database.sql(
      `insert into parked_facts (delivery, position, key, stream, revision, event_id, type, tenant_id, reason, attempts,
          first_failed_at) select $1, n, 'ord_2', 'order-ord_2', n, '00000000-0000-8000-a000-000000000009',
          'order.created', $2, 'x', 10, now() from generate_series(101, 1300) n`,
      [id, TENANT],
    )
    expect((await client.get(path)).body.parked).to.equal(PARKED_MAX)
    await database.sql(`delete from parked_facts where delivery = $1 and key = 'ord_2'`, [id])
    const seen: string[] = []
    const reasons = new Set<string>()
    for (let cursor = ''; ; ) {
      const { items, page } = (await client.get(`${path}/dead-letters?limit=2${cursor}`)).body
      seen.push(...items.map(({ position }: { position: string }) => position))
      for (const { reason } of items) reasons.add(reason)
      cursor = `&cursor=${page.next_cursor}`
      if (!page.has_more) break
    }
    expect(seen).to.deep.equal(['1', '2', '3', '4', '5'])
    // Error texts are for operators only; a tenant gets fixed sentences that it can act on.
    expect([...reasons]).to.have.members([
      'An earlier one of its key is parked.',
      'It is larger than the broker takes.',
      'It could not be delivered; the operators of the ledger know why.',
    ])
    expect(
      (await client.get(`/subscriptions/${(await subscribe()).split('/')[2]}/dead-letters`)).body.items,
    ).to.deep.equal([])
    await database.sql('delete from parked_facts where delivery = $1', [id])
  })

  it('have their dead letters replayed and discarded on request, with the reason in the audit record', async () => {
    const tenant = 'subscribers-with-dead-letters'
    const mine = await as({ tenant })
    const { id } = (await mine.post('/subscriptions', aSubscription())).body
    const path = `/subscriptions/${id}/dead-letters`
    for (const [position, key] of [
      [1, 'ord_1'],
      [2, 'ord_1'],
      [3, 'ord_2'],
    ] as const)
      await database.sql(
        `insert into parked_facts (delivery, position, key, stream, revision, event_id, type, tenant_id, reason, attempts,
          first_failed_at) values ($1, $2, $3, 'order-ord_1', 0, $4, 'order.created', $5, 'x', 10, now())`,
        [id, position, key, `00000000-0000-8000-a000-00000000000${position}`, tenant],
      )
    const requested = async () =>
      (await mine.get(path)).body.items.map(({ requested: what }: { requested: string | null }) => what)
    const reason = 'The broker takes it now.'
    const replayed = await mine.post(`${path}:replay`, { subject: 'ord_1', reason })
    expect([replayed.status, replayed.body]).to.deep.equal([202, { subject: 'ord_1', requested: 'replay', facts: 2 }])
    expect(await requested()).to.deep.equal(['replay', 'replay', null])
    const discarded = await mine.post(`${path}:discard`, {
      subject: 'ord_1',
      position: '2',
      reason: 'Nobody needs it.',
    })
    expect(discarded.body).to.deep.equal({ subject: 'ord_1', requested: 'discard', facts: 1 })
    expect(await requested()).to.deep.equal(['replay', 'discard', null])
    expect((await mine.post(`${path}:discard`, { subject: 'ord_9', reason })).body.facts, 'none of that key').to.equal(
      0,
    )
    expect((await mine.post(`${path}:discard`, { subject: 'ord_1' })).body.errors[0].pointer).to.equal('/reason')

    const reader = await as({ tenant, scopes: ['events:subscribe'] })
    const stranger = await as({ tenant: 'subscribers-elsewhere' })
    for (const action of ['replay', 'discard']) {
      const body = { subject: 'ord_2', reason }
      expect(outcomeOf(await reader.post(`${path}:${action}`, body))).to.deep.equal([403, 'insufficient_scope'])
      expect(outcomeOf(await stranger.post(`${path}:${action}`, body))).to.deep.equal([404, 'resource_not_found'])
    }
    expect(await requested()).to.deep.equal(['replay', 'discard', null])
    const records = async () => (await mine.get('/audit-records?decision=granted')).body.items
    await eventually(async () =>
      (await records()).some((record: { operation: string }) => record.operation === 'discard_dead_letters'),
    )
    expect(
      (await records())
        .filter(({ operation }: { operation: string }) => operation.endsWith('dead_letters'))
        .map((record: Record<string, unknown>) => [record['operation'], record['resource'], record['reason']]),
    ).to.deep.include.members([
      ['replay_dead_letters', id, reason],
      ['discard_dead_letters', id, 'Nobody needs it.'],
    ])
    await database.sql('delete from parked_facts where delivery = $1', [id])
  })

  it('have audit records', async () => {
    const tenant = 'subscribers-audited'
    const mine = await as({ tenant })
    const { id } = (await mine.post('/subscriptions', aSubscription())).body
    await mine.post(`/subscriptions/${id}:pause`, {})
    await mine.post(`/subscriptions/${id}:resume`, {})
    await mine.post(`/subscriptions/${id}:replay`, { from: 'beginning' })
    const { headers } = await mine.request('DELETE', `/subscriptions/${id}`)
    await (await as({ tenant, scopes: ['events:read'] })).post('/subscriptions', aSubscription())
    const fresh = { 'if-min-position': headers.get('ledger-position') ?? '', prefer: 'wait=10' }
    await eventually(async () => (await mine.get('/audit-records?decision=denied', fresh)).body.items.length === 1)
    const { items } = (await mine.get('/audit-records', fresh)).body
    // The requests for audit records, of which there may be several here, are audited too.
    const ofSubscriptions = items.filter(({ operation }: { operation: string }) => operation !== 'list_audit_records')
    expect(
      ofSubscriptions.map((item: Record<string, string>) => [item['operation'], item['decision'], item['resource']]),
    ).to.deep.equal([
      ['create_subscription', 'denied', null],
      ...['delete', 'replay', 'resume', 'pause', 'create'].map(verb => [`${verb}_subscription`, 'granted', id]),
    ])
  })
})
