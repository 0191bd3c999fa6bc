import { expect } from 'chai'
import { factIds, factsPage, placeBefore, subscribedFacts } from '../../projections/facts/queries.ts'
import type { Query } from '../../projections/listQueries.ts'
import { subscriptionPage } from '../../projections/subscriptions/queries.ts'
import { deliveriesUpTo } from '../../src/feeds/subscriptionCheckpoints.ts'
import type { Database } from '../../src/ports.ts'
import { useTestPostgres } from '../feeds/fixtures.ts'
import { rowsRead } from './rowsRead.ts'

const OTHERS = 30_000
const OWN = 3_000
const HEAD = BigInt(OTHERS + 2 * OWN)
const LIMIT = 100
/** A page of facts with a filter examines 2,000 facts of the tenant. */
const READ_AT_MOST = 2_500

/**
 * One tenant has facts at the end of the log alone, and one at its beginning alone. The statistics of Postgres cannot
 * express that, so its planner expects the facts of each to be spread evenly over the log.
 */
describe('the facts of one tenant beside many of another', () => {
  const postgres = useTestPostgres()
  let database: Database

  before(async () => {
    database = await postgres.ledgerDatabase()
    await database.sql(
      `insert into facts_v1 (position, tenant_id, type, subject, at, event)
        select n, case when n <= ${OWN} then 'early' when n > ${OTHERS + OWN} then 'late' else 'other-' || n % 7 end,
          'order.created', 'ord_' || n, '2026-01-01T00:00:00Z', json_build_object('id', n, 'data', repeat('x', 400))
        from generate_series(1, ${HEAD}) n`,
    )
    await database.sql(`insert into checkpoints (name, position, epoch) values ('facts_v1', $1, 1)`, [HEAD])
    await database.sql('analyze facts_v1')
  })

  const start = 0n
  const early = BigInt(OWN)
  const spot = { to: HEAD, limit: LIMIT }
  const page = { after: placeBefore(start), limit: LIMIT }
  const end = { after: { arrival: early, seq: 0n }, limit: LIMIT }
  const target = { types: ['invoice.paid'], from_time: null, ...spot }
  const queries: Readonly<Record<string, Query<object>>> = {
    'a page of facts': factsPage({ tenant: 'late', ...page }),
    'a page of facts with a filter': factsPage({ tenant: 'late', types: ['invoice.paid'], ...page }),
    'a page of facts at the end of a tenant that is quiet': factsPage({ tenant: 'early', ...end }),
    'the facts that a proof counts': factIds({ tenant: 'late', after: start, ...spot }),
    'the facts that a proof counts, of a tenant that is quiet': factIds({ tenant: 'early', after: early, ...spot }),
    'the facts of a subscription': subscribedFacts({ tenant: 'late', after: start, ...target }),
    'the facts of a subscription of a tenant that is quiet': subscribedFacts({
      tenant: 'early',
      after: early,
      ...target,
    }),
  }
  for (const [name, query] of Object.entries(queries))
    it(`are read without those of the other: ${name}`, async () => {
      expect(await rowsRead(database, query)).to.be.at.most(READ_AT_MOST)
    })

  /** Adds subscriptions that begin at the start of the log, and some that begin after all facts of their tenant. */
  const subscribe = (): Promise<unknown> =>
    database.sql(
      `insert into subscriptions_v1 (id, tenant_id, state, revision, created_at, updated_at, created_by, types, scopes,
          from_position, replays, metadata)
        select 'sub_' || tenant || n, tenant, 'active', 0, now(), now(), 'tests', '["order.created"]', '[]', at, 0, '{}'
        from (values ('late', 0), ('early', ${OWN + 1})) of (tenant, at), generate_series(1, 10) n`,
    )

  it('are read without those of the other: the lag of subscriptions', async () => {
    await subscribe()
    await database.sql('analyze subscriptions_v1')
    const statements: Query<object>[] = [subscriptionPage({ tenant: 'late', filters: {}, limit: 1 })]
    await deliveriesUpTo(async (text, values = []) => {
      statements.push({ text, values })
      return []
    }, HEAD)
    for (const query of statements) expect(await rowsRead(database, query)).to.be.at.most(READ_AT_MOST)
  })

  it('are read completely, page by page', async () => {
    for (const tenant of ['early', 'late']) {
      let count = 0
      for (let after = start; ; ) {
        const { text, values } = factIds({ tenant, after, ...spot, limit: OWN })
        const rows = await database.sql<{ position: bigint }>(text, values)
        count += rows.length
        after = rows.at(-1)?.position ?? HEAD
        if (rows.length < OWN) break
      }
      expect([tenant, count]).to.deep.equal([tenant, OWN])
    }
  })
})
