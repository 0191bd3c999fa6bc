import { expect } from 'chai'
import { openDatabase } from '../../../src/adapters/postgres/database.ts'
import { createApiVersionUsage, apiVersionUsage, OTHER_CLIENTS } from '../../../src/http/versions/apiVersionUsage.ts'
import { createLedgerTables } from '../../../src/feeds/ledgerTables.ts'
import type { Database } from '../../../src/ports.ts'
import { newDatabase } from '../../support/postgres.ts'

const DAYS = 30
const ROUTE = 'GET /orders/{id}'
const shop = { tenant: 'acme', client: 'shop' }

/** The next sleep ends when the test says so. */
const controlledSleep = () => {
  let begun = Promise.withResolvers<() => void>()
  return {
    sleep: (_timeMs: number, signal?: AbortSignal): Promise<void> =>
      new Promise(resolve => {
        signal?.addEventListener('abort', () => resolve())
        begun.resolve(resolve)
      }),
    /** Waits until a sleep has begun, and ends it. */
    pass: async (): Promise<void> => {
      const end = await begun.promise
      begun = Promise.withResolvers()
      end()
    },
  }
}

describe('the usage of API versions', () => {
  let database: Database
  const open: { close: () => Promise<void> }[] = []
  before(async () => {
    database = openDatabase({ connectionString: await newDatabase() })
    await createLedgerTables(database)
  })
  beforeEach(() => database.sql('delete from api_version_usage'))
  after(async () => {
    await Promise.all(open.map(one => one.close()))
    await database.close()
  })

  type Given = { readonly database?: Pick<Database, 'transaction'>; readonly seriesMax?: number }
  const instance = (given: Given = {}) => {
    const clock = controlledSleep()
    const failures: unknown[] = []
    const onFailure = (error: unknown): void => void failures.push(error)
    const usage = createApiVersionUsage({ database, world: clock, onFailure, ...given })
    open.push(usage)
    return { ...usage, ...clock, failures }
  }
  const stored = async () => (await apiVersionUsage(database.sql, DAYS)).map(one => Object.values(one))

  it('is the sum over all instances, and is complete when they have ended', async () => {
    const [first, second] = [instance(), instance()]
    for (let request = 0; request < 100; request++)
      (request % 2 ? first : second).count('2026-11-01', ROUTE, request < 80 ? shop : { ...shop, client: 'till' })
    second.count('2026-11-22', ROUTE, shop)
    await Promise.all([first.close(), second.close()])
    expect(await stored()).to.deep.equal([
      ['2026-11-01', ROUTE, 'acme', 'shop', 80],
      ['2026-11-01', ROUTE, 'acme', 'till', 20],
      ['2026-11-22', ROUTE, 'acme', 'shop', 1],
    ])
  })

  it('is written in batches, and adds to what was written before', async () => {
    let writes = 0
    const counting: Given['database'] = {
      transaction: work => {
        writes++
        return database.transaction(work)
      },
    }
    const { count, pass, close } = instance({ database: counting })
    for (let request = 0; request < 50; request++) count('2026-11-01', ROUTE, shop)
    await pass()
    count('2026-11-01', ROUTE, shop)
    await close()
    expect(writes).to.be.at.most(2)
    expect(await stored()).to.deep.equal([['2026-11-01', ROUTE, 'acme', 'shop', 51]])
  })

  it('loses nothing while Postgres does not answer', async () => {
    let isDown = true
    const failing: Given['database'] = {
      transaction: work => (isDown ? Promise.reject(new Error('planted')) : database.transaction(work)),
    }
    const { count, pass, close, failures } = instance({ database: failing })
    count('2026-11-01', ROUTE, shop)
    await pass()
    await pass()
    expect(failures).to.have.lengthOf(1)
    expect(await stored()).to.deep.equal([])
    isDown = false
    count('2026-11-01', ROUTE, shop)
    await close()
    expect(await stored()).to.deep.equal([['2026-11-01', ROUTE, 'acme', 'shop', 2]])
  })

  it('has a bounded number of rows, whatever the clients are called', async () => {
    const { count, close } = instance({ seriesMax: 3 })
    for (let client = 0; client < 1_000; client++) count('2026-11-01', ROUTE, { tenant: 'acme', client: `c${client}` })
    await close()
    const rows = await stored()
    expect(rows).to.have.lengthOf(4)
    expect(rows[0]).to.deep.equal(['2026-11-01', ROUTE, '', OTHER_CLIENTS, 997])
  })

  it('accepts any name of a client', async () => {
    const { count, close } = instance()
    const long = 'x'.repeat(500)
    for (const client of ['a\nb', 'a\u0000b', long, `${long}y`]) count('2026-11-01', ROUTE, { tenant: 'acme', client })
    await close()
    expect((await stored()).map(([, , , client, requests]) => [client, requests])).to.deep.equal([
      ['x'.repeat(200), 2],
      ['a\nb', 1],
      ['a\uFFFDb', 1],
    ])
  })

  it('leaves out older days, and deletes them in the end', async () => {
    await database.sql(
      `insert into api_version_usage select current_date - age, '2026-11-01', 'old', 'acme', 'shop', 1
        from unnest(array[31, 200]) as age`,
    )
    expect(await stored()).to.deep.equal([])
    const { count, close } = instance()
    count('2026-11-01', ROUTE, shop)
    await close()
    const kept = await database.sql(`select 1 from api_version_usage where route = 'old'`)
    expect(kept).to.have.lengthOf(1)
  })
})
