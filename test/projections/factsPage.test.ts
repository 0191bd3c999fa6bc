import { expect } from 'chai'
import { type FactsPageRow, factsPage, type FactsRequest, placeBefore } from '../../projections/facts/queries.ts'
import type { Database } from '../../src/ports.ts'
import { useTestPostgres } from '../feeds/fixtures.ts'
import { rowsRead } from './rowsRead.ts'

const FACTS = 30_000
/** A page that examined all facts would read every row. */
const READ_AT_MOST = 5_000
const LIMIT = 26

describe('a page of facts', () => {
  const postgres = useTestPostgres()
  let database: Database

  before(async () => {
    database = await postgres.ledgerDatabase()
    // Positions have gaps, and every other fact is of another tenant. The last one of all is the only one of its type.
    await database.sql(
      `insert into facts_v1 (position, tenant_id, type, subject, at, event)
        select n * 300, case when n % 2 = 0 then 'acme' else 'other' end,
          case when n = ${FACTS} then 'invoice.paid' else 'order.created' end, 'ord_' || n,
          '2026-01-01T00:00:00Z'::timestamptz + n * interval '1 minute', json_build_object('id', n)
        from generate_series(1, ${FACTS}) n`,
    )
    await database.sql(`insert into checkpoints (name, position, epoch) values ('facts_v1', $1, 1)`, [FACTS * 300])
    await database.sql('analyze facts_v1')
  })

  const read = async (request: Partial<FactsRequest>): Promise<FactsPageRow[]> => {
    const { text, values } = factsPage({ tenant: 'acme', after: placeBefore(0n), limit: LIMIT, ...request })
    return database.sql<FactsPageRow>(text, values)
  }
  const rowsReadFor = (request: Partial<FactsRequest>): Promise<number> =>
    rowsRead(database, factsPage({ tenant: 'acme', after: placeBefore(0n), limit: LIMIT, ...request }))

  const filters: readonly Partial<FactsRequest>[] = [
    { types: ['invoice.paid'] },
    { subject: 'ord_none' },
    { from_time: '2999-01-01T00:00:00Z' },
  ]
  for (const filter of filters)
    it(`examines a bounded part of the history for ${JSON.stringify(filter)}`, async () => {
      expect(await rowsReadFor(filter)).to.be.at.most(READ_AT_MOST)
    })

  it('without a filter reads hardly more rows than it returns', async () => {
    expect(await rowsReadFor({ limit: 101 })).to.be.at.most(110)
  })

  it('that found nothing is followed by one that begins after it, until the end is reached', async () => {
    let after = placeBefore(0n)
    let pages = 0
    const actual: unknown[] = []
    for (let isCut = true; isCut; pages += 1) {
      const rows = await read({ types: ['invoice.paid'], after })
      actual.push(...rows.flatMap(({ event }) => (event ? [event] : [])))
      const end = rows.at(-1) ?? expect.fail()
      expect(end.arrival > after.arrival).to.equal(true)
      isCut = end.is_cut === true
      after = end
    }
    expect(actual).to.deep.equal([{ id: FACTS }])
    expect(after.arrival).to.equal(BigInt(FACTS * 300))
    expect(pages).to.be.within(2, FACTS / 1_000)
    expect(await read({ types: ['invoice.paid'], after })).to.deep.equal([])
  })

  it('ends at the checkpoint of the projector', async () => {
    const checkpoint = BigInt(FACTS * 150)
    await database.sql(`update checkpoints set position = $1 where name = 'facts_v1'`, [checkpoint])
    try {
      const rows = await read({ after: { arrival: checkpoint - 900n, seq: 0n } })
      expect(rows.at(-1)?.arrival).to.equal(checkpoint)
    } finally {
      await database.sql(`update checkpoints set position = $1 where name = 'facts_v1'`, [FACTS * 300])
    }
  })
})
