import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { openEventStore } from '../../../../src/adapters/eventstoredb/eventStore.ts'
import { createLedger } from '../../../../src/commands/commandHandler.ts'
import { verifierOf } from '../../../../src/compose/apiKeys.ts'
import { loadApiKeyPepper } from '../../../../src/embedded/apiKeyPepper.ts'
import { createAuthentication } from '../../../../src/http/index.ts'
import { type ApiKeySecrets, createApiKeySecrets } from '../../../../src/identity/apiKeySecrets.ts'
import { READ_SCOPES } from '../../../../src/identity/principal.ts'
import type { EventStore } from '../../../../src/ports.ts'
import { realWorld } from '../../../../src/lib/clockAndRandomness.ts'
import { type Answer, anOrder, type Client, clientOf, newKey } from '../../../support/client.ts'
import { eventually, takesEffect } from '../../../support/eventually.ts'
import { sharedService, type TestService } from '../../../support/service.ts'
import { caller, startVariant, type Variant } from '../../../support/serviceVariants.ts'

const TENANT = 'keyholders'
const KEY = /^lk_dev_([0-9A-HJKMNP-TV-Z]{26})_([0-9A-Za-z]{43})_([0-9A-Za-z]{6})$/
const DAY_MS = 24 * 60 * 60 * 1000
/** A revocation takes effect on every instance within this time. */
const REVOKED_WITHIN_MS = 5_000

const aKey = (given: object = {}) => ({ name: 'nightly', scopes: ['orders:read'], ...given })
const secretIn = (key: string): string => KEY.exec(key)?.[2] ?? expect.fail(`No key: ${key}`)
const refused = ({ status, body }: Answer) => [status, body.code]
const INVALID = [401, 'api_key_invalid']

describe('API keys', () => {
  let service: TestService
  let client: Client
  let store: EventStore
  let secrets: ApiKeySecrets
  const started: Variant[] = []

  const as = async (who: object): Promise<Client> =>
    clientOf(service.api, await service.token({ tenant: TENANT, ...who }))
  const issue = async (given: object = {}, headers = {}): Promise<Answer> => {
    const answer = await client.post('/api-keys', aKey(given), headers)
    expect(answer.status, answer.text).to.equal(201)
    return answer
  }
  const use = (key: string, path = '/orders', api = service.api): Promise<Answer> =>
    clientOf(api).get(path, { 'x-api-key': key })
  const revoke = (id: string): Promise<Answer> => client.request('DELETE', `/api-keys/${id}`)
  const rotate = (id: string, body?: object): Promise<Answer> => client.post(`/api-keys/${id}:rotate`, body)
  const upToDate = async () => ({ 'if-min-position': String(await store.head()), prefer: 'wait=10' })

  /** Another instance of the service on the same store, with separate caches and a clock that is `laterMs` ahead. */
  const anotherInstance = async (laterMs = 0, tenant = TENANT): Promise<string> => {
    const world = { ...realWorld(), now: () => Date.now() + laterMs }
    const apiKeys = verifierOf(secrets, createLedger(store, world))
    const tokens = { verify: async () => ({ ...caller, tenant }), close: () => undefined }
    const variant = await startVariant(service, {
      world,
      authenticate: createAuthentication({ tokens, apiKeys }),
      services: usual => ({ ...usual, keySecrets: secrets }),
    })
    started.push(variant)
    return variant.api
  }

  before(async () => {
    service = await sharedService()
    client = await as({})
    store = openEventStore({ connectionString: service.addresses.event_store })
    secrets = createApiKeySecrets('dev', await loadApiKeyPepper(service.dataDir))
  })
  after(async () => {
    for (const variant of started) await variant.close()
    await store.close()
  })

  describe('are issued', () => {
    it('with the secret, their location and their scopes', async () => {
      const before = Date.now()
      const answer = await issue({ quota: { requests: 10, window_seconds: 60 }, metadata: { team: 'finance' } })
      const { id, secret, created_at, updated_at, expires_at, ...rest } = answer.body
      expect(secret).to.match(KEY)
      expect(id).to.equal(`key_${KEY.exec(secret)?.[1]}`)
      expect(answer.headers.get('location')).to.equal(`/api-keys/${id}`)
      expect(answer.headers.get('etag')).to.match(/^"/)
      expect(answer.headers.get('cache-control')).to.equal('no-store')
      expect(Date.parse(expires_at)).to.be.within(before + 90 * DAY_MS, Date.now() + 90 * DAY_MS)
      expect(updated_at).to.equal(created_at)
      expect(rest).to.deep.equal({
        state: 'active',
        version: 0,
        tenant_id: TENANT,
        created_by: 'tester',
        metadata: { team: 'finance' },
        name: 'nightly',
        prefix: `lk_dev_${id.slice(4)}`,
        scopes: ['orders:read'],
        quota: { requests: 10, window_seconds: 60 },
        rotated_at: null,
        previous_secret_until: null,
        revoked_at: null,
      })
    })

    it('and shown without the secret afterwards, by id and in the list', async () => {
      const { body, headers } = await issue()
      const { secret, ...shown } = body
      const read = await client.get(`/api-keys/${body.id}`)
      expect(read.body).to.deep.equal(shown)
      expect(read.headers.get('etag')).to.equal(headers.get('etag'))
      const { items } = (await client.get('/api-keys?limit=1', await upToDate())).body
      expect(items).to.deep.equal([shown])
      expect(secretIn(secret)).to.have.length(43)
    })

    it('once per Idempotency-Key: a replay has the same bytes, also after a rotation', async () => {
      const key = { 'idempotency-key': newKey() }
      const first = await issue({ scopes: ['payments:read', 'orders:read'] }, key)
      await rotate(first.body.id)
      await revoke(first.body.id)
      for (const scopes of [
        ['payments:read', 'orders:read'],
        ['orders:read', 'payments:read'],
      ]) {
        const again = await client.post('/api-keys', aKey({ scopes }), key)
        expect(again.text).to.equal(first.text)
        expect(again.headers.get('idempotent-replayed')).to.equal('true')
        for (const name of ['location', 'etag']) expect(again.headers.get(name)).to.equal(first.headers.get(name))
      }
      const changed = await client.post('/api-keys', aKey({ expires_in_days: 89 }), key)
      expect(refused(changed)).to.deep.equal([422, 'idempotency_key_reused'])
      const pointers = changed.body.errors.map(({ pointer }: { pointer: string }) => pointer)
      expect(pointers).to.have.members(['/expires_in_days', '/scopes/1'])
      const outcome = await client.get(`/idempotency-keys/${key['idempotency-key']}?operation=issue_api_key`)
      expect(outcome.body).to.deep.include({ status: 'succeeded', links: { result: `/api-keys/${first.body.id}` } })
    })

    it('as one, for ten concurrent requests with one Idempotency-Key', async () => {
      const key = { 'idempotency-key': newKey() }
      const answers = await Promise.all(Array.from({ length: 10 }, () => issue({}, key)))
      expect(new Set(answers.map(({ text }) => text)).size).to.equal(1)
    })

    it('only with scopes that the caller holds', async () => {
      const reader = await as({ scopes: ['keys:manage', 'orders:read'] })
      expect((await reader.post('/api-keys', aKey())).status).to.equal(201)
      const more = await reader.post('/api-keys', aKey({ scopes: ['orders:read', 'audit:read', 'ledger:read'] }))
      expect(refused(more)).to.deep.equal([403, 'insufficient_scope'])
      expect(more.body.detail).to.contain('audit:read').and.contain('ledger:read').and.not.contain('orders:read')
      const { body } = await issue({ scopes: ['orders:read', 'audit:read'] })
      expect(refused(await reader.post(`/api-keys/${body.id}:rotate`))).to.deep.equal([403, 'insufficient_scope'])
    })

    const wrong: Readonly<Record<string, object>> = {
      'a scope that writes': { scopes: ['orders:write'] },
      'the scope to manage keys': { scopes: ['keys:manage'] },
      'an unknown scope': { scopes: ['everything:read'] },
      'no scope': { scopes: [] },
      'a scope twice': { scopes: ['orders:read', 'orders:read'] },
      'no name': { name: '' },
      'a very long name': { name: 'x'.repeat(101) },
      'a lifetime of no days': { expires_in_days: 0 },
      'a lifetime of more than 90 days': { expires_in_days: 91 },
      'a lifetime of half a day': { expires_in_days: 0.5 },
      'a quota of no requests': { quota: { requests: 0, window_seconds: 60 } },
      'a quota without a window': { quota: { requests: 1 } },
      'a tenant': { tenant_id: 'other' },
      'a secret that the caller chose': { secret: 'hunter2' },
    }
    for (const [what, given] of Object.entries(wrong))
      it(`never with ${what}`, async () =>
        expect(refused(await client.post('/api-keys', aKey(given)))).to.deep.equal([400, 'validation_failed']))
  })

  describe('are used', () => {
    it('to read by their scopes only, in their own tenant', async () => {
      const order = await client.post('/orders', anOrder())
      const { secret } = (await issue()).body
      expect((await use(secret)).status).to.equal(200)
      expect((await use(secret, `/orders/${order.body.id}`)).body.id).to.equal(order.body.id)
      expect(refused(await use(secret, '/payments'))).to.deep.equal([403, 'insufficient_scope'])
      const otherTenant = clientOf(service.api, await service.token({ tenant: 'keyless-tenant' }))
      const foreign = await otherTenant.post('/orders', anOrder())
      expect((await use(secret, `/orders/${foreign.body.id}`)).status).to.equal(404)
    })

    it('never to write, nor to manage keys, whatever their scopes', async () => {
      const { id, secret } = (await issue({ scopes: READ_SCOPES })).body
      const holder = clientOf(service.api)
      const header = { 'x-api-key': secret }
      const requested = [
        await holder.post('/orders', anOrder(), header),
        await holder.post('/api-keys', aKey(), header),
        await holder.get('/api-keys', header),
        await holder.get(`/api-keys/${id}`, header),
        await holder.post(`/api-keys/${id}:rotate`, {}, header),
        await holder.request('DELETE', `/api-keys/${id}`, { headers: header }),
      ]
      for (const answer of requested) expect(refused(answer)).to.deep.equal([403, 'credential_not_permitted'])
    })

    it('alone: 400 together with a token', async () => {
      const { secret } = (await issue()).body
      expect(refused(await client.get('/orders', { 'x-api-key': secret }))).to.deep.equal([400, 'multiple_credentials'])
    })

    it('within their quota', async () => {
      const { secret } = (await issue({ quota: { requests: 2, window_seconds: 600 } })).body
      const answers = [await use(secret), await use(secret), await use(secret)]
      expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 429])
      expect(answers[2]?.body.code).to.equal('quota_exceeded')
      expect(Number(answers[2]?.headers.get('retry-after'))).to.be.within(1, 600)
    })

    it('not with a changed secret, another key’s secret, a part missing, or in another header', async () => {
      const [one, other] = [(await issue()).body, (await issue()).body]
      const [mine, theirs] = [KEY.exec(one.secret) ?? [], KEY.exec(other.secret) ?? []]
      const flipped = one.secret.replace(
        /_(.)(?=[^_]{42}_)/,
        (_: string, first: string) => `_${first === 'a' ? 'b' : 'a'}`,
      )
      const withSecret = createApiKeySecrets('dev', 'a pepper that is not that of the service').keyOf(one.id, 'x')
      const keys = [flipped, withSecret, `lk_dev_${mine[1]}_${theirs[2]}_${theirs[3]}`, `lk_dev_${mine[1]}_${mine[2]}`]
      for (const key of keys) expect(refused(await use(key)), key).to.deep.equal(INVALID)
      const bearer = await clientOf(service.api, one.secret).get('/orders')
      expect(refused(bearer)).to.deep.equal([401, 'token_invalid'])
      expect((await use(one.secret)).status).to.equal(200)
    })

    it('and refused without a reason, which is in the log', async () => {
      const { id, secret } = (await issue()).body
      const wrong = createApiKeySecrets('dev', 'a pepper that is not that of the service').keyOf(id, 'x')
      const answers = [await use(`${secret}0`), await use(wrong)]
      await revoke(id)
      answers.push(await eventually(async () => [await use(secret)].find(({ status }) => status === 401)))
      const words = answers.map(({ body: { correlation_id: _, ...problem } }) => problem)
      expect(words[0]).to.deep.equal(words[1]).and.to.deep.equal(words[2])
      const faultOf = async ({ headers }: Answer): Promise<string | undefined> => {
        const log = await readFile(join(service.dataDir, 'ledger.log'), 'utf8')
        const own = log.split('\n').filter(line => line.includes(`"${headers.get('x-correlation-id')}"`))
        return own.map(line => JSON.parse(line).fault).find(fault => fault !== undefined)
      }
      const faults = []
      for (const answer of answers) faults.push(await eventually(() => faultOf(answer)))
      expect(faults).to.deep.equal(['key_malformed', 'key_secret_wrong', 'key_revoked'])
    })
  })

  describe('are rotated', () => {
    it('to another secret at once, on every instance; the previous secret stays valid for the overlap', async () => {
      const { id, secret } = (await issue({ expires_in_days: 7 })).body
      const elsewhere = await anotherInstance()
      for (const api of [service.api, elsewhere]) expect((await use(secret, '/orders', api)).status).to.equal(200)
      const rotated = await rotate(id, { overlap_seconds: 60 })
      expect(rotated.status).to.equal(200)
      const { secret: next, ...shown } = rotated.body
      expect(secretIn(next)).to.not.equal(secretIn(secret))
      for (const api of [service.api, elsewhere]) {
        expect((await use(next, '/orders', api)).status).to.equal(200)
        expect((await use(secret, '/orders', api)).status).to.equal(200)
      }
      expect(shown).to.include({ state: 'active', version: 1 })
      expect(Date.parse(shown.expires_at) - Date.parse(shown.rotated_at)).to.equal(7 * DAY_MS)
      expect(Date.parse(shown.previous_secret_until) - Date.parse(shown.rotated_at)).to.equal(60_000)
      expect((await client.get(`/api-keys/${id}`)).body).to.deep.equal(shown)
      const later = await anotherInstance(60_000)
      expect(refused(await use(secret, '/orders', later))).to.deep.equal(INVALID)
      expect((await use(next, '/orders', later)).status).to.equal(200)
      const last = (await rotate(id, { overlap_seconds: 1 })).body
      await sleep(Date.parse(last.previous_secret_until) - Date.now() + 10)
      for (const api of [service.api, elsewhere]) {
        // A key that was read before the rotation may be cached for two more seconds.
        await eventually(async () => (await use(next, '/orders', api)).status === 401)
        expect(refused(await use(next, '/orders', api))).to.deep.equal(INVALID)
        expect((await use(last.secret, '/orders', api)).status).to.equal(200)
      }
    })

    it('for a day unless another time is asked for, seven days at most', async () => {
      const { id } = (await issue()).body
      for (const body of [undefined, {}]) {
        const { rotated_at, previous_secret_until } = (await rotate(id, body)).body
        expect(Date.parse(previous_secret_until) - Date.parse(rotated_at)).to.equal(DAY_MS)
      }
      expect((await rotate(id, { overlap_seconds: 604_800 })).status).to.equal(200)
      expect((await rotate(id, { overlap_seconds: 0 })).body.previous_secret_until).to.equal(null)
      for (const overlap_seconds of [604_801, -1, 0.5, '60'])
        expect(refused(await rotate(id, { overlap_seconds }))).to.deep.equal([400, 'validation_failed'])
    })

    it('again, which ends the oldest of three secrets', async () => {
      const { id, secret: first } = (await issue()).body
      const second = (await rotate(id)).body.secret
      const third = (await rotate(id)).body.secret
      for (const secret of [second, third]) expect((await use(secret)).status).to.equal(200)
      expect(refused(await use(first))).to.deep.equal(INVALID)
    })

    it('one at a time: one Idempotency-Key cannot rotate two of them', async () => {
      const ids = [(await issue()).body.id, (await issue()).body.id]
      const key = { 'idempotency-key': newKey() }
      const answers = await Promise.all(ids.map(id => client.post(`/api-keys/${id}:rotate`, {}, key)))
      expect(answers.map(({ status }) => status)).to.have.members([200, 422])
      const lost = answers.findIndex(({ status }) => status === 422)
      expect(answers[lost]?.body.code).to.equal('idempotency_key_reused')
      expect((await client.get(`/api-keys/${ids[lost]}`)).body.rotated_at).to.equal(null)
    })

    it('once per Idempotency-Key: a repeated request gets the same response, and the secret in use stays valid', async () => {
      const { id, secret } = (await issue()).body
      const key = { 'idempotency-key': newKey() }
      const again = (body: object = {}) => client.post(`/api-keys/${id}:rotate`, body, key)
      const [first, second] = [await again(), await again()]
      expect([first.status, first.headers.get('idempotent-replayed')]).to.deep.equal([200, null])
      expect([second.status, second.headers.get('idempotent-replayed')]).to.deep.equal([200, 'true'])
      for (const one of [secret, first.body.secret]) expect((await use(one)).status).to.equal(200)
      await rotate(id, { overlap_seconds: 0 })
      const third = await again()
      for (const answer of [second, third]) {
        expect(answer.text).to.equal(first.text)
        for (const name of ['etag', 'ledger-position', 'location'])
          expect(answer.headers.get(name), name).to.equal(first.headers.get(name))
      }
      const changed = await again({ overlap_seconds: 1 })
      expect(refused(changed)).to.deep.equal([422, 'idempotency_key_reused'])
      expect(changed.text).to.not.contain('lk_dev')
      const both = { 'idempotency-key': newKey() }
      const answers = await Promise.all(
        Array.from({ length: 10 }, () => client.post(`/api-keys/${id}:rotate`, {}, both)),
      )
      expect(new Set(answers.map(({ text }) => text)).size).to.equal(1)
      expect((await client.get(`/api-keys/${id}`)).body.version).to.equal(3)
    })

    it('not by another tenant, and not when they are revoked', async () => {
      const { id } = (await issue()).body
      const otherTenant = clientOf(service.api, await service.token({ tenant: 'keyless-tenant' }))
      expect((await otherTenant.post(`/api-keys/${id}:rotate`)).status).to.equal(404)
      await revoke(id)
      expect((await rotate(id)).status).to.equal(404)
    })
  })

  describe('are revoked', () => {
    it('on every instance within 5 s, and are still shown', async () => {
      const { id, secret } = (await issue()).body
      const elsewhere = await anotherInstance()
      const apis = [service.api, elsewhere]
      for (const api of apis) expect((await use(secret, '/orders', api)).status).to.equal(200)
      const gone = await revoke(id)
      expect([gone.status, gone.text]).to.deep.equal([204, ''])
      await Promise.all(
        apis.map(api => takesEffect(async () => (await use(secret, '/orders', api)).status === 401, REVOKED_WITHIN_MS)),
      )
      for (const api of apis) expect(refused(await use(secret, '/orders', api))).to.deep.equal(INVALID)
      expect((await client.get(`/api-keys/${id}`)).body).to.include({ state: 'revoked', version: 1 })
      expect((await revoke(id)).status).to.equal(404)
    })

    it('not by another tenant: 404 as for a missing key', async () => {
      const { id, secret } = (await issue()).body
      const otherTenant = clientOf(service.api, await service.token({ tenant: 'keyless-tenant' }))
      for (const answer of [
        await otherTenant.get(`/api-keys/${id}`),
        await otherTenant.request('DELETE', `/api-keys/${id}`),
      ])
        expect(refused(answer)).to.deep.equal([404, 'resource_not_found'])
      expect((await otherTenant.get('/api-keys', await upToDate())).body.items).to.deep.equal([])
      expect((await use(secret)).status).to.equal(200)
    })
  })

  describe('expire', () => {
    it('without an event: they are refused, and shown as expired under another tag', async () => {
      const { id, secret } = (await issue({ expires_in_days: 1 })).body
      const later = await anotherInstance(DAY_MS + 1)
      expect(refused(await use(secret, '/orders', later))).to.deep.equal(INVALID)
      const [now, then] = [await client.get(`/api-keys/${id}`), await clientOf(later, 'any').get(`/api-keys/${id}`)]
      expect([now.body.state, then.body.state]).to.deep.equal(['active', 'expired'])
      expect(then.headers.get('etag')).to.not.equal(now.headers.get('etag'))
      const cached = { 'if-none-match': now.headers.get('etag') ?? '' }
      expect((await client.get(`/api-keys/${id}`, cached)).status).to.equal(304)
      expect((await clientOf(later, 'any').get(`/api-keys/${id}`, cached)).status).to.equal(200)
    })

    it('and a replay of the request that issued them has the same response', async () => {
      const key = { 'idempotency-key': newKey() }
      const first = await issue({ expires_in_days: 1 }, key)
      const later = clientOf(await anotherInstance(2 * DAY_MS), 'any')
      expect((await later.post('/api-keys', aKey({ expires_in_days: 1 }), key)).text).to.equal(first.text)
    })

    it('and are listed by the state that they are shown in', async () => {
      const tenant = 'keys-by-state'
      const manager = clientOf(service.api, await service.token({ tenant }))
      const ids = []
      for (let index = 0; index < 3; index += 1) ids.push((await manager.post('/api-keys', aKey())).body.id)
      await manager.request('DELETE', `/api-keys/${ids[2]}`)
      const listed = async (state: string, api: string): Promise<string[]> => {
        const requested = clientOf(api, await service.token({ tenant }))
        const { body } = await requested.get(`/api-keys?state=${state}`, await upToDate())
        return body.items.map(({ id }: { id: string }) => id)
      }
      const later = await anotherInstance(91 * DAY_MS, tenant)
      const states = ['active', 'expired', 'revoked']
      const now = await Promise.all(states.map(state => listed(state, service.api)))
      expect(now).to.deep.equal([[ids[1], ids[0]], [], [ids[2]]])
      const then = await Promise.all(states.map(state => listed(state, later)))
      expect(then).to.deep.equal([[], [ids[1], ids[0]], [ids[2]]])
    })
  })

  describe('are audited', () => {
    it('when they are issued, rotated, revoked and denied', async () => {
      const issued = await issue()
      const { id } = issued.body
      const withoutScope = await as({ subject: 'without-scope', scopes: ['keys:manage'] })
      const answers = [await withoutScope.post('/api-keys', aKey()), issued, await rotate(id), await revoke(id)]
      const records = []
      for (const { headers } of answers) {
        const path = `/audit-records?correlation_id=${headers.get('x-correlation-id')}`
        records.push(...(await client.get(path, await upToDate())).body.items)
      }
      const decisions = records.map(({ decision, operation, check, resource }) => [
        decision,
        operation,
        check,
        resource,
      ])
      expect(decisions).to.deep.equal([
        ['denied', 'issue_api_key', 'scope', null],
        ['granted', 'issue_api_key', 'scope', id],
        ['granted', 'rotate_api_key', 'state', id],
        ['granted', 'revoke_api_key', 'state', id],
      ])
    })
  })

  describe('need a pepper', () => {
    it('without which every request that concerns them gets the name of the missing setting', async () => {
      const { id, secret } = (await issue()).body
      const tokens = { verify: async () => ({ ...caller, tenant: TENANT }), close: () => undefined }
      const variant = await startVariant(service, {
        authenticate: createAuthentication({ tokens }),
        services: usual => ({ ...usual, keySecrets: undefined }),
      })
      started.push(variant)
      const without = clientOf(variant.api, 'any')
      const answers = [
        await use(secret, '/orders', variant.api),
        await without.post('/api-keys', aKey()),
        await without.get('/api-keys'),
        await without.get(`/api-keys/${id}`),
        await without.post(`/api-keys/${id}:rotate`),
        await without.request('DELETE', `/api-keys/${id}`),
      ]
      for (const answer of answers) {
        expect(refused(answer)).to.deep.equal([503, 'dependency_unavailable'])
        expect(answer.body.detail).to.contain('API_KEY_PEPPER')
      }
      expect((await without.get('/orders')).status, 'the rest goes on').to.equal(200)
    })
  })
})
