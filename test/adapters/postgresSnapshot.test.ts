import { join } from 'node:path'

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'chai'
import { DatabaseError } from 'pg'
import { openDatabase } from '../../src/adapters/postgres/database.ts'
import { type Database, Unavailable } from '../../src/ports.ts'
import {
  type TestChild,
  endPrograms,
  removeFolder,
  startPostgres,
  temporaryFolder,
} from '../embedded/childProcesses.ts'
import { eventually } from '../support/eventually.ts'
import { putPreparedCluster } from '../support/preparedCluster.ts'
import { rejectionOf } from '../support/rejection.ts'

describe('Postgres adapter: a snapshot', () => {
  let folder: string
  let postgres: TestChild
  let db: Database
  let application: string

  before(async () => {
    folder = await temporaryFolder()
    await putPreparedCluster(join(folder, 'pg'))
    postgres = await startPostgres(join(folder, 'pg'))
    application = 'reader'
    db = openDatabase({ connectionString: postgres.address, applicationName: application, poolMax: 3 })
    await db.sql('create table rows (n int primary key, text text not null)')
    await db.sql(`insert into rows select n, repeat('x', 500) from generate_series(1, 20000) n`)
  })
  after(async () => {
    await endPrograms()
    await db.close()
    await postgres.stop()
    await removeFolder(folder)
  })

  const all = { text: 'select n from rows where n > $1 order by n', values: [0] }

  it('returns every row once, in order, in batches', async () => {
    const sizes: number[] = []
    const seen = await db.snapshot(async ({ batches }) => {
      const numbers: number[] = []
      for await (const rows of batches<{ n: number }>(all, 3_000)) {
        sizes.push(rows.length)
        numbers.push(...rows.map(({ n }) => n))
      }
      return numbers
    })
    expect(sizes).to.deep.equal([3_000, 3_000, 3_000, 3_000, 3_000, 3_000, 2_000])
    expect(seen).to.deep.equal(Array.from({ length: 20_000 }, (_, index) => index + 1))
  })

  it('returns nothing for an empty table, and no empty batch at the end', async () => {
    const sizesOf = (text: string) =>
      db.snapshot(async ({ batches }) => {
        const sizes: number[] = []
        for await (const rows of batches({ text, values: [] }, 10)) sizes.push(rows.length)
        return sizes
      })
    expect(await sizesOf('select n from rows where n < 0')).to.deep.equal([])
    expect(await sizesOf('select n from rows where n <= 20')).to.deep.equal([10, 10])
  })

  it('has the state of its first read in all reads, also after commits of others', async () => {
    const [before, after, counted] = await db.snapshot(async ({ sql, batches }) => {
      const count = async () => (await sql<{ count: bigint }>('select count(*) as count from rows'))[0]?.count
      const first = await count()
      await db.sql(`insert into rows values (20001, 'new')`)
      await db.sql('delete from rows where n <= 2')
      let read = 0
      for await (const rows of batches(all, 5_000)) read += rows.length
      return [first, await count(), read]
    })
    expect([before, after, counted]).to.deep.equal([20_000n, 20_000n, 20_000])
    expect(await db.sql('select n from rows where n in (1, 2, 20001)')).to.deep.equal([{ n: 20_001 }])
  })

  it('isolates two concurrent snapshots', async () => {
    await db.snapshot(async ({ batches }) => {
      const one = batches<{ n: number }>({ text: 'select n from rows where n > 2 order by n', values: [] }, 1)
      const other = batches<{ n: number }>({ text: 'select n from rows order by n desc', values: [] }, 1)
      const ends = []
      for await (const [first] of one) {
        for await (const [last] of other) {
          ends.push(first?.n, last?.n)
          break
        }
        break
      }
      expect(ends).to.deep.equal([3, 20_001])
    })
  })

  it('refuses writes', async () => {
    const failure = await rejectionOf(db.snapshot(({ sql }) => sql('delete from rows')))
    expect(failure).to.be.instanceOf(DatabaseError)
    expect(failure).to.include({ code: '25006' })
  })

  it('may take longer than the statement of a request', async () => {
    const slow = 'select pg_sleep(2.5), 7 as n'
    expect(await rejectionOf(db.sql(slow))).to.be.instanceOf(Unavailable)
    expect((await db.snapshot(({ sql }) => sql<{ n: number }>(slow)))[0]?.n).to.equal(7)
    const read = await db.snapshot(async ({ batches }) => {
      const numbers: number[] = []
      for await (const rows of batches<{ n: number }>({ text: slow, values: [] }, 5))
        numbers.push(...rows.map(r => r.n))
      return numbers
    })
    expect(read).to.deep.equal([7])
  })

  it('releases its connection, also when the work fails', async () => {
    for (let time = 0; time < 6; time++) {
      const failure = await rejectionOf(
        db.snapshot(async ({ batches }) => {
          for await (const rows of batches(all, 10)) if (rows.length > 0) throw new RangeError('enough')
        }),
      )
      expect(failure).to.be.instanceOf(RangeError)
    }
    expect(await db.sql('select 1 as one')).to.deep.equal([{ one: 1 }])
    const open = `select 1 from pg_stat_activity where application_name = $1 and state = 'idle in transaction'`
    await eventually(async () => (await db.sql(open, [application])).length === 0)
  })

  it('keeps one batch in memory, and not the table', async () => {
    const wide = { text: `select n, text || n as text from generate_series(1, 100) g, rows`, values: [] }
    // Measures live memory after a garbage collection.
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const keptBytes = (): number => {
      collect()
      return process.memoryUsage().heapUsed
    }
    const before = keptBytes()
    let [read, most] = [0, 0]
    await db.snapshot(async ({ batches }) => {
      for await (const rows of batches(wide, 1_000)) {
        read += rows.length
        if (read % 50_000 === 0) most = Math.max(most, keptBytes() - before)
        if (read >= 400_000) break
      }
    })
    expect(read).to.equal(400_000)
    // The rows are 200 MB of text.
    expect(most / 1024 ** 2).to.be.lessThan(10)
  })
})
