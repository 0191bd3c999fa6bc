import { expect } from 'chai'
import { healthOf, cachedFor } from '../../../src/compose/health.ts'
import { openDatabase } from '../../../src/adapters/postgres/database.ts'
import type { FeedState } from '../../../src/feeds/feedLoop.ts'
import { checkErrors } from '../../../scripts/ledger/doctor/databaseChecks.ts'
import { anOrder, clientOf } from '../../support/client.ts'
import { sharedService, type TestService } from '../../support/service.ts'
import { type Difference, startVariant, unavailable } from '../../support/serviceVariants.ts'

const CALLERS = 200
const SECRET = 'password authentication failed for user "ledger" at 10.0.0.7'

describe('GET /readyz', () => {
  let service: TestService
  before(async () => {
    service = await sharedService()
  })

  it('shows failed checks in fixed words and without reasons', async () => {
    const database = openDatabase({ connectionString: service.addresses.postgres, poolMax: 1 })
    const failing = { ...database, sql: () => Promise.reject(new Error(SECRET)) }
    const feeds = new Map(
      [
        { name: 'orders_v1', state: 'live' as const, position: 1n },
        { name: 'invoices_v1', state: 'stopped' as const, position: 1n, error: SECRET },
        { name: 'publisher', state: 'waiting' as const, position: 1n, error: SECRET },
      ].map(state => [state.name, state]),
    )
    const variant = await startVariant(service, {
      services: usual => ({
        ...usual,
        health: () => healthOf({ database: failing, ledger: usual.ledger, feeds }),
      }),
    })
    const { status, body, text } = await clientOf(variant.api).get('/readyz')
    await variant.close()
    await database.close()
    expect([status, body]).to.deep.equal([
      503,
      {
        status: 'not_ready',
        checks: {
          process: 'ok',
          event_store: 'ok',
          postgres: 'unavailable',
          orders_v1: 'live',
          invoices_v1: 'stopped',
          publisher: 'retrying',
        },
      },
    ])
    expect(text).not.to.include('10.0.0.7')
  })

  it('names read models that lack an event of 30 s ago, and stays ready', async () => {
    const database = openDatabase({ connectionString: service.addresses.postgres, poolMax: 1 })
    const words: unknown[] = []
    const lagOf = (seconds: number) => async () => new Map([['orders_v1', { events: 1, seconds }]])
    for (const lags of [lagOf(29), lagOf(30), () => Promise.reject(new Error(SECRET))]) {
      const variant = await startVariant(service, {
        services: usual => ({
          ...usual,
          health: () => healthOf({ database, ledger: usual.ledger, feeds: new Map(), lags }),
        }),
      })
      const { status, body } = await clientOf(variant.api).get('/readyz')
      await variant.close()
      words.push([status, (body as { checks: Record<string, string> }).checks['read_models']])
    }
    await database.close()
    expect(words).to.deep.equal([
      [200, 'ok'],
      [200, 'lagging'],
      [200, 'unavailable'],
    ])
  })

  it('is not ready when a feed is stalled, unless the feed waits for the broker', async () => {
    const database = openDatabase({ connectionString: service.addresses.postgres, poolMax: 1 })
    const stalled = { name: 'settlement', state: 'stalled' as const, position: 1n, error: SECRET }
    const reportOf = (feed: FeedState) =>
      startVariant(service, {
        services: usual => ({
          ...usual,
          health: () => healthOf({ database, ledger: usual.ledger, feeds: new Map([[feed.name, feed]]) }),
        }),
      })
    const reported: unknown[] = []
    for (const feed of [
      stalled,
      { ...stalled, dependency: 'event store' as const },
      { ...stalled, dependency: 'fact bus' as const },
    ]) {
      const variant = await reportOf(feed)
      const { status, body } = await clientOf(variant.api).get('/readyz')
      await variant.close()
      reported.push([status, (body as { checks: Record<string, string> }).checks['settlement']])
    }
    await database.close()
    expect(reported).to.deep.equal([
      [503, 'stalled'],
      [503, 'stalled'],
      [200, 'stalled'],
    ])
  })

  it('for traffic, is ready without its dependencies, which it does not ask, until the service is going to end', async () => {
    const draining = new AbortController()
    const never = new Promise<never>(() => undefined)
    const variant = await startVariant(service, {
      ...unavailable,
      services: usual => ({ ...usual, health: () => never, draining: draining.signal }),
    })
    const client = clientOf(variant.api)
    const probed = async () => {
      const { status, body } = await client.get('/readyz?for=traffic')
      return [status, body]
    }
    expect(await probed()).to.deep.equal([200, { status: 'ready', checks: { process: 'ok' } }])
    const refused = await client.post('/orders', anOrder())
    expect([refused.status, refused.body.code]).to.deep.equal([503, 'dependency_unavailable'])
    expect(refused.headers.get('retry-after')).to.match(/^\d+$/)
    draining.abort()
    expect(await probed()).to.deep.equal([503, { status: 'not_ready', checks: { process: 'shutting_down' } }])
    // It is the answer to a request that it still serves.
    expect((await client.post('/orders', anOrder())).headers.get('connection')).to.equal('close')
    const misspelt = await client.get('/readyz?for=trafic')
    expect([misspelt.status, misspelt.body.code]).to.deep.equal([400, 'validation_failed'])
    await variant.close()
  })

  it('is not ready once the service is going to end', async () => {
    const draining = new AbortController()
    const services: Difference['services'] = usual => ({ ...usual, draining: draining.signal })
    const variant = await startVariant(service, { services })
    const client = clientOf(variant.api)
    expect((await client.get('/readyz')).status).to.equal(200)
    draining.abort()
    const { status, body } = await client.get('/readyz')
    expect([status, body.checks.process, (await client.get('/livez')).status]).to.deep.equal([
      503,
      'shutting_down',
      200,
    ])
    await variant.close()
  })

  it(`checks the dependencies once for ${CALLERS} concurrent requests, and again a second later`, async () => {
    let nowMs = 0
    let made = 0
    const health = cachedFor(
      async () => {
        made++
        await new Promise(resolve => setImmediate(resolve))
        return { ready: true, checks: { made: 'ok' } }
      },
      () => nowMs,
    )
    const variant = await startVariant(service, { services: usual => ({ ...usual, health }) })
    const client = clientOf(variant.api)
    const answers = await Promise.all(Array.from({ length: CALLERS }, () => client.get('/readyz')))
    expect([new Set(answers.map(({ status }) => status)), made]).to.deep.equal([new Set([200]), 1])
    nowMs = 999
    await client.get('/readyz')
    expect(made).to.equal(1)
    nowMs = 1_000
    await client.get('/readyz')
    await variant.close()
    expect(made).to.equal(2)
  })

  it(`stays ready under ${CALLERS} concurrent requests`, async () => {
    const client = clientOf(service.api)
    const answers = await Promise.all(Array.from({ length: CALLERS }, () => client.get('/readyz')))
    expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([200]))
  })

  it('omits the reasons, which ledger doctor shows', async () => {
    const database = openDatabase({ connectionString: service.addresses.postgres, poolMax: 1 })
    try {
      await database.sql('insert into feed_errors (name, error) values ($1, $2)', ['a-feed', SECRET])
      const actual = await checkErrors(database)
      expect(actual.status).to.equal('finding')
      expect(actual.detail).to.include(`a-feed, since `).and.to.include(SECRET)
      await database.sql('delete from feed_errors where name = $1', ['a-feed'])
      expect(await checkErrors(database)).to.include({ status: 'ok' })
    } finally {
      await database.close()
    }
  })
})
