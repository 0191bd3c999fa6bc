import { expect } from 'chai'
import { openDatabase } from '../../../src/adapters/postgres/database.ts'
import { createLocalCounter, openSharedCounter } from '../../../src/adapters/rateLimiter/counters.ts'
import { readConfig } from '../../../src/settings/config.ts'
import { Problem } from '../../../src/http/problems/problemCatalogue.ts'
import { createRateLimits } from '../../../src/http/admission/rateLimits.ts'
import { DEFAULT_RATE_LIMITS, type RateLimitSettings } from '../../../src/settings/limits.ts'
import { type Database, type RateCounter, Unavailable } from '../../../src/ports.ts'
import { type Answer, aPayment, approvedInvoice, clientOf, inParallel, pay } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { everyRate } from '../../support/limits.ts'
import { sharedService, type TestService } from '../../support/service.ts'
import { caller, startVariant, TENANT, type Variant, type Difference } from '../../support/serviceVariants.ts'

const many = { requests: 1_000_000, windowSeconds: 60 }
const PLENTY = everyRate(many)
const HOUR_SECONDS = 3_600
const CONCURRENCY = 16
const of = (requests: number, windowSeconds = 60) => ({ requests, windowSeconds })

describe('rate limits', () => {
  let service: TestService
  let database: Database
  const started: Variant[] = []

  const instance = async (
    settings: Partial<RateLimitSettings>,
    wrong: Difference = {},
    shared: RateCounter = createLocalCounter(),
  ): Promise<string> => {
    const limits = createRateLimits({ ...PLENTY, ...settings }, { local: createLocalCounter(), shared })
    const variant = await startVariant(service, { ...wrong, services: usual => ({ ...usual, rateLimits: limits }) })
    started.push(variant)
    return variant.api
  }
  const as = (subject: string): Difference => ({ authenticate: async () => ({ ...caller, subject, client: subject }) })
  const fail = (error: unknown): never => {
    throw error
  }
  const statuses = (answers: readonly Answer[], status: number): number =>
    answers.filter(answer => answer.status === status).length

  before(async () => {
    service = await sharedService()
    database = openDatabase({ connectionString: service.addresses.postgres })
  })
  after(async () => {
    for (const variant of started) await variant.close()
    await database.close()
  })

  it('are headers of every response to an authenticated caller, refusals included, and of no other', async () => {
    const client = clientOf(await instance({ default: of(3) }))
    const answers = [await client.get('/orders'), await client.get('/orders/ord_00000000000000000000000000')]
    const policies = answers.map(({ headers }) => headers.get('ratelimit-policy'))
    expect(policies).to.deep.equal(['"default";q=3;w=60', '"default";q=3;w=60'])
    const [first, second] = answers.map(({ headers }) => headers.get('ratelimit'))
    expect(first).to.match(/^"default";r=2;t=(60|59)$/)
    expect(second).to.match(/^"default";r=1;t=(60|5\d)$/)
    expect((await client.get('/livez')).headers.get('ratelimit')).to.equal(null)
  })

  it('refuse further requests with 429, the policy, and the time until the window ends', async () => {
    const client = clientOf(await instance({ default: of(2, 30) }))
    await client.get('/orders')
    await client.get('/orders')
    const refused = await client.get('/orders')
    expect([refused.status, refused.body.code]).to.deep.equal([429, 'rate_limited'])
    expect(refused.headers.get('ratelimit-policy')).to.equal('"default";q=2;w=30')
    expect(refused.headers.get('ratelimit')).to.match(/^"default";r=0;t=(30|2\d)$/)
    expect(Number(refused.headers.get('retry-after'))).to.be.within(20, 30)
    expect(refused.body.retry).to.deep.include({ retryable: true, strategy: 'same_request' })
  })

  it('hold a refusal of a caller who did not wait, and tell it the rest of the time', async () => {
    const release = Promise.withResolvers<void>()
    const held: unknown[] = []
    const api = await instance(
      { default: of(0, 7) },
      {
        refusals: {
          hold: async (account, afterMs) => {
            held.push([account.tenant, afterMs])
            await release.promise
            return 4_000
          },
        },
      },
    )
    let isAnswered = false
    const refused = clientOf(api)
      .get('/orders')
      .finally(() => (isAnswered = true))
    await eventually(async () => held.length > 0)
    expect([held, isAnswered]).to.deep.equal([[[TENANT, 7_000]], false])
    release.resolve()
    const { status, headers, body } = await refused
    expect([status, headers.get('retry-after'), body.retry.after_seconds]).to.deep.equal([429, '3', 3])
  })

  it('accept requests again when the window is over', async () => {
    const client = clientOf(await instance({ default: of(1, 1) }))
    const isNow = (status: number) => eventually(async () => (await client.get('/orders')).status === status)
    await isNow(200)
    await isNow(429)
    await isNow(200)
  })

  it('are separate for each caller', async () => {
    let subject = 'one'
    const authenticate = async () => ({ ...caller, subject, client: subject })
    const client = clientOf(await instance({ default: of(1) }, { authenticate }))
    await client.get('/orders')
    expect((await client.get('/orders')).status).to.equal(429)
    subject = 'another'
    expect((await client.get('/orders')).status).to.equal(200)
  })

  it('are checked before authorization, whose refusals are audit records', async () => {
    const authenticate = async () => ({ ...caller, scopes: new Set<string>() })
    const client = clientOf(await instance({ default: of(1) }, { authenticate }))
    expect((await client.get('/orders')).body.code).to.equal('insufficient_scope')
    expect((await client.get('/orders')).body.code).to.equal('rate_limited')
  })

  it('are checked before the body is read', async () => {
    const client = clientOf(await instance({ payments: of(0) }))
    const refused = await client.request('POST', '/payments', { raw: '{', headers: { 'idempotency-key': 'k' } })
    expect([refused.status, refused.headers.get('ratelimit-policy')]).to.deep.equal([
      429,
      '"default";q=1000000;w=60, "payments";q=0;w=60',
    ])
  })

  it('of payments are shared by all instances, and exact', async () => {
    const settings = { payments: of(40, HOUR_SECONDS) }
    const shared = () => openSharedCounter(database, fail)
    const one = clientOf(await instance(settings, as('shared'), await shared()))
    const two = clientOf(await instance(settings, as('shared'), await shared()))
    const { invoiceId } = await approvedInvoice(clientOf(service.api, await service.token({ tenant: TENANT })))
    const payment = aPayment(invoiceId, { amount: 1 })
    const answers = await inParallel(CONCURRENCY, Array.from({ length: 100 }), (_, index) =>
      pay(index % 2 ? one : two, payment, `limit-${index}`),
    )
    expect([statuses(answers, 201), statuses(answers, 429)]).to.deep.equal([40, 60])
  })

  it('permit a tenant ten replays of subscriptions an hour, whoever of its callers replays', async () => {
    const { replays, tenant_replays } = DEFAULT_RATE_LIMITS
    const started = await openSharedCounter(database, fail)
    let subject = 'first'
    const authenticate = async () => ({ ...caller, tenant: 'replaying', subject, client: subject })
    const client = clientOf(await instance({ replays, tenant_replays }, { authenticate }, started))
    const { id } = (await client.post('/subscriptions', { types: ['order.created'], start: 'now' })).body
    const replay = () => client.post(`/subscriptions/${id}:replay`, { from: 'beginning' })
    for (let number = 1; number <= 10; number++) {
      subject = `caller ${number % 3}`
      expect((await replay()).status).to.equal(202)
    }
    subject = 'another'
    const refused = await replay()
    expect([refused.status, refused.body.code]).to.deep.equal([429, 'rate_limited'])
    expect(refused.body.detail).to.match(/^All callers of your tenant together may make 10 .*"tenant_replays"/)
    expect(refused.headers.get('ratelimit-policy')).to.include('"tenant_replays";q=10;w=3600')
    expect(Number(refused.headers.get('retry-after'))).to.be.within(3_000, HOUR_SECONDS)
    expect((await client.get(`/subscriptions/${id}`)).status, 'other requests').to.equal(200)
    await started.close()
  })

  it('are counted by each instance alone while Postgres does not answer', async () => {
    let isUnavailable = false
    const flaky: Database = {
      ...database,
      sql: (text, values) =>
        isUnavailable
          ? Promise.reject(new Unavailable('database', { effect: 'none', cause: new Error('planted') }))
          : database.sql(text, values),
    }
    const failures: unknown[] = []
    const counter = await openSharedCounter(flaky, error => failures.push(error))
    isUnavailable = true
    const counted = [await counter.count('caller', of(9)), await counter.count('caller', of(9))]
    expect([counted.map(({ used }) => used), failures.length]).to.deep.equal([[1, 2], 1])
  })

  it('of an API key are its own quota', async () => {
    const authenticate = async () => ({ ...caller, kind: 'api_key' as const, quota: of(1, 120) })
    const client = clientOf(await instance({}, { authenticate }))
    const [first, second] = [await client.get('/orders'), await client.get('/orders')]
    expect(first.headers.get('ratelimit-policy')).to.equal(
      '"default";q=1000000;w=60, "api_keys";q=1000000;w=60, "quota";q=1;w=120',
    )
    expect([second.status, second.body.code]).to.deep.equal([429, 'quota_exceeded'])
  })

  it('of the API keys of a tenant are shared by all of them, and are not those of its users or of other tenants', async () => {
    let who = { ...caller, kind: 'api_key' as 'api_key' | 'workload', client: 'key_1' }
    const client = clientOf(await instance({ api_keys: of(4) }, { authenticate: async () => who }))
    const answers: Answer[] = []
    for (const key of ['key_1', 'key_2', 'key_3', 'key_1', 'key_2', 'key_4']) {
      who = { ...who, client: key }
      answers.push(await client.get('/orders'))
    }
    expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 200, 200, 429, 429])
    expect(answers[5]?.body).to.include({ code: 'quota_exceeded' })
    expect(answers[5]?.headers.get('ratelimit')).to.include('"api_keys";r=0')
    who = { ...who, tenant: 'another-tenant' }
    expect((await client.get('/orders')).status).to.equal(200)
    who = { ...who, tenant: caller.tenant, kind: 'workload' }
    expect((await client.get('/orders')).status).to.equal(200)
  })

  it('of a tenant count all its callers together, and no other tenant', async () => {
    let who = { ...caller, client: 'app_1' }
    const client = clientOf(await instance({ tenant_default: of(4) }, { authenticate: async () => who }))
    const answers: Answer[] = []
    for (const app of ['app_1', 'app_2', 'app_3', 'app_1', 'app_4']) {
      who = { ...who, client: app }
      answers.push(await client.get('/orders'))
    }
    expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 200, 200, 429])
    expect(answers[4]?.body.detail).to.equal(
      'All callers of your tenant together may make 4 requests in 60 s (the limit "tenant_default").',
    )
    expect(answers[4]?.headers.get('ratelimit-policy')).to.equal('"default";q=1000000;w=60, "tenant_default";q=4;w=60')
    who = { ...who, tenant: 'another-tenant' }
    expect((await client.get('/orders')).status).to.equal(200)
  })

  it('of a tenant are not used up by a caller over its own limit', async () => {
    let who = caller
    const client = clientOf(
      await instance({ default: of(1), tenant_default: of(3) }, { authenticate: async () => who }),
    )
    for (let requests = 0; requests < 5; requests += 1) await client.get('/orders')
    who = { ...caller, client: 'another' }
    expect((await client.get('/orders')).status).to.equal(200)
  })

  it('of failed authentications replace 401 by 429, and never refuse valid credentials', async () => {
    let isKnown = false
    const authenticate = async () => {
      if (isKnown) return caller
      throw new Problem('token_invalid')
    }
    const client = clientOf(await instance({ auth_failures: of(2) }, { authenticate }))
    const failed = [await client.get('/orders'), await client.get('/orders'), await client.get('/orders')]
    expect(failed.map(({ status }) => status)).to.deep.equal([401, 401, 429])
    expect(Number(failed[2]?.headers.get('retry-after'))).to.be.within(1, 60)
    isKnown = true
    expect((await client.get('/orders')).status).to.equal(200)
  })

  it('do not count expired tokens, which always get 401', async () => {
    let code: 'token_expired' | 'token_invalid' = 'token_expired'
    const authenticate = () => Promise.reject(new Problem(code))
    const client = clientOf(await instance({ auth_failures: of(2) }, { authenticate }))
    const codesOf = async (times: number) => {
      const codes: string[] = []
      for (let n = 0; n < times; n++) codes.push((await client.get('/orders')).body.code)
      return codes
    }
    expect(await codesOf(4)).to.deep.equal(Array(4).fill('token_expired'))
    code = 'token_invalid'
    expect(await codesOf(3)).to.deep.equal(['token_invalid', 'token_invalid', 'rate_limited'])
    code = 'token_expired'
    expect(await codesOf(2)).to.deep.equal(Array(2).fill('token_expired'))
  })

  it('are counted for the client that a trusted proxy names', async () => {
    const authenticate = () => Promise.reject(new Problem('token_invalid'))
    const proxied = { authenticate, trustedProxies: ['127.0.0.0/8', '::1'] }
    const client = clientOf(await instance({ auth_failures: of(1) }, proxied))
    const from = async (address: string) =>
      (await client.get('/orders', { 'x-forwarded-for': `203.0.113.9, ${address}` })).status
    expect([await from('192.0.2.1'), await from('192.0.2.1'), await from('192.0.2.2')]).to.deep.equal([401, 429, 401])
    const direct = clientOf(await instance({ auth_failures: of(1) }, { authenticate }))
    const statusFor = async (address: string) => (await direct.get('/orders', { 'x-forwarded-for': address })).status
    expect([await statusFor('192.0.2.1'), await statusFor('192.0.2.2')]).to.deep.equal([401, 429])
  })
})

describe('the shared counter', () => {
  let database: Database
  before(async () => {
    database = openDatabase({ connectionString: (await sharedService()).addresses.postgres })
  })
  after(() => database.close())

  it('counts the requests of callers with names of any length, for all instances', async () => {
    const failures: unknown[] = []
    const open = () => openSharedCounter(database, error => failures.push(error))
    const [one, other] = [await open(), await open()]
    const names = [200, 255, 5_000].map(length => `payments:${JSON.stringify(['long', '"'.repeat(length), 'client'])}`)
    const used: number[] = []
    for (const name of names) for (const counter of [one, other]) used.push((await counter.count(name, of(9))).used)
    expect([used, failures]).to.deep.equal([[1, 2, 1, 2, 1, 2], []])
  })

  it('has the requests of an instance in the database when the instance has ended', async () => {
    const limit = of(1_000, HOUR_SECONDS)
    const [ending, other] = [await openSharedCounter(database, String), await openSharedCounter(database, String)]
    for (let requests = 0; requests < 5; requests += 1) await ending.count('ending', limit)
    await ending.close()
    expect((await other.count('ending', limit)).used).to.equal(6)
  })
})

describe('RATE_LIMITS', () => {
  const limitsOf = (text: string) => readConfig({ RATE_LIMITS: text }).rateLimits

  it('replaces the limits that it names', () => {
    expect(limitsOf('payments=5/1')).to.deep.equal({
      default: of(6_000),
      tenant_default: of(60_000),
      payments: of(5, 1),
      tenant_payments: of(50, 1),
      exports: of(10, 3_600),
      tenant_exports: of(100, 3_600),
      replays: of(10, 3_600),
      tenant_replays: of(10, 3_600),
      auth_failures: of(60),
      api_keys: of(12_000),
    })
  })
  it('sets the limit of a tenant to ten times that of a caller, unless it names it', () => {
    expect(limitsOf('payments=5/1,tenant_payments=7/1').tenant_payments).to.deep.equal(of(7, 1))
  })
  for (const text of ['payments', 'payments=5', 'payment=5/1', 'payments=5/0', 'payments=-1/60', 'payments=1e3/60'])
    it(`is refused as ${text}, with the expected format`, () => {
      expect(() => limitsOf(text)).to.throw(
        /RATE_LIMITS=.* is not valid: .* does not have the form policy=requests\/seconds/,
      )
    })
})
