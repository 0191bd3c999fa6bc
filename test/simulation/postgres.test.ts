import { expect } from 'chai'
import { openEngine } from './postgres.ts'

const ROWS = 1_000
const SNAPSHOTS = 40

describe('Postgres in the simulation', () => {
  it('does not grow with the number of snapshots that were taken and released', async () => {
    const engine = await openEngine({ statementsPerVacuum: 100 })
    await engine.query(
      `insert into checkpoints (name, position, epoch) select n::text, 1, 1 from generate_series(1, ${ROWS}) n`,
    )
    const sizes: number[] = []
    for (let taken = 0; taken < SNAPSHOTS; taken += 1) {
      const schema = await engine.snapshot()
      const [copy] = await engine.query<{ count: bigint }>(`select count(*) as count from ${schema}.checkpoints`)
      expect(Number(copy?.count)).to.equal(ROWS)
      engine.release(schema)
      await engine.vacuumWhenDue()
      const [size] = await engine.query<{ bytes: bigint }>(
        `select pg_total_relation_size('${schema}.checkpoints') as bytes`,
      )
      sizes.push(Number(size?.bytes))
    }
    expect(Math.max(...sizes)).to.be.lessThan(10 * (sizes[0] ?? 0))
  })

  it('has the virtual time of a run, in conditions and in the defaults of columns', async () => {
    const engine = await openEngine()
    let time = '2026-03-01T08:00:00.000Z'
    engine.setClock(() => time)
    await engine.query(
      `insert into reservations (kind, tenant_id, id, owner) values ('exports', 'acme', 'op_1', 'alice')`,
    )
    time = '2026-03-01T08:01:00.000Z'
    const text = `select now() - taken_at = interval '1 minute' as is_minute from reservations where taken_at < now()`
    expect(await engine.query(text)).to.deep.equal([{ is_minute: true }])
  })
})
