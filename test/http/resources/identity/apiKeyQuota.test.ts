import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { type Answer, type Client, clientOf, newKey } from '../../../support/client.ts'
import { eventually } from '../../../support/eventually.ts'
import { sharedService, type TestService } from '../../../support/service.ts'
import { caller, startVariant, type Variant } from '../../../support/serviceVariants.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const MAX = 3
const aKey = (given: object = {}) => ({ name: 'nightly', scopes: ['orders:read'], ...given })
const outcome = ({ status, body }: Answer) => (status < 300 ? status : body.code)

/** The quota of API keys of a tenant that are neither revoked nor expired. */
describe('API keys of a tenant', () => {
  let service: TestService
  let tenant: string
  let laterMs = 0
  const started: Variant[] = []
  before(async () => {
    service = await sharedService()
  })
  beforeEach(() => {
    tenant = `cap-${randomUUID().slice(0, 8)}`
    laterMs = 0
  })
  after(async () => {
    for (const variant of started) await variant.close()
  })

  const instance = async (): Promise<Client> => {
    const variant = await startVariant(service, {
      world: { now: () => Date.now() + laterMs },
      authenticate: async () => ({ ...caller, tenant }),
      services: usual => ({ ...usual, apiKeysPerTenantMax: MAX }),
    })
    started.push(variant)
    return clientOf(variant.api)
  }
  const fill = async (client: Client, given: object = {}): Promise<string[]> => {
    const answers = await Promise.all(Array.from({ length: MAX }, () => client.post('/api-keys', aKey(given))))
    expect(answers.map(outcome)).to.deep.equal(Array.from({ length: MAX }, () => 201))
    return answers.map(({ body }) => body.id)
  }
  /** Waits until the read model has this many keys in this state. */
  const untilListed = (client: Client, state: string, count: number) =>
    eventually(async () => (await client.get(`/api-keys?state=${state}`)).body.items?.length === count)

  it('do not exceed the limit with twenty concurrent requests to two instances', async () => {
    const clients = [await instance(), await instance()]
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => (clients[n % 2] as Client).post('/api-keys', aKey())),
    )
    const refused = answers.filter(({ status }) => status !== 201)
    expect(refused).to.have.length(20 - MAX)
    for (const { status, body, headers } of refused) {
      expect([status, body.code, body.retry.retryable]).to.deep.equal([429, 'quota_exceeded', true])
      expect(body.detail).to.equal(
        `The tenant has ${MAX} active API keys, the maximum. Revoke one, or wait until one expires.`,
      )
      expect(Number(headers.get('retry-after'))).to.be.above(0)
    }
  })

  it('can be issued again when one is revoked', async () => {
    const client = await instance()
    const [first] = await fill(client)
    await untilListed(client, 'active', MAX)
    expect(outcome(await client.post('/api-keys', aKey()))).to.equal('quota_exceeded')
    await client.request('DELETE', `/api-keys/${first}`)
    await eventually(async () => outcome(await client.post('/api-keys', aKey())) === 201)
    expect(outcome(await client.post('/api-keys', aKey()))).to.equal('quota_exceeded')
  })

  it('do not count when they have expired, and count again when they are renewed', async () => {
    const client = await instance()
    const [first, second] = await fill(client, { expires_in_days: 1 })
    await untilListed(client, 'active', MAX)
    laterMs = 2 * DAY_MS
    expect(outcome(await client.post('/api-keys', aKey()))).to.equal(201)
    expect(outcome(await client.post('/api-keys', aKey()))).to.equal(201)
    const renewed = await Promise.all([first, second].map(id => client.post(`/api-keys/${id}:rotate`, {})))
    expect(renewed.map(outcome)).to.have.members([200, 'quota_exceeded'])
  })

  it('that have expired since a rotation get its answer again at the limit, and a refused rotation leaves its key free', async () => {
    const client = await instance()
    const [first, second] = await fill(client, { expires_in_days: 1 })
    const rotate = (id = '', key = '') => client.post(`/api-keys/${id}:rotate`, {}, { 'idempotency-key': key })
    const [used, free] = [newKey(), newKey()]
    const rotated = await rotate(first, used)
    expect(outcome(rotated)).to.equal(200)
    await untilListed(client, 'active', MAX)
    laterMs = 2 * DAY_MS
    await fill(client)
    const repeated = await rotate(first, used)
    expect([outcome(repeated), repeated.text]).to.deep.equal([200, rotated.text])
    expect(outcome(await rotate(second, free))).to.equal('quota_exceeded')
    const answer = await client.get(`/idempotency-keys/${free}?operation=rotate_api_key`)
    expect(answer.body.status).to.equal('never_seen')
  })

  it('can be rotated at the limit, and count once when a request is repeated', async () => {
    const client = await instance()
    const key = { 'idempotency-key': newKey() }
    const first = await client.post('/api-keys', aKey(), key)
    for (let n = 1; n < MAX; n++) expect(outcome(await client.post('/api-keys', aKey()))).to.equal(201)
    expect(outcome(await client.post('/api-keys', aKey()))).to.equal('quota_exceeded')
    expect((await client.post('/api-keys', aKey(), key)).text).to.equal(first.text)
    expect(outcome(await client.post(`/api-keys/${first.body.id}:rotate`, {}))).to.equal(200)
  })
})
