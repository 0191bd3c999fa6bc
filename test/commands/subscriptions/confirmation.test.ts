import { expect } from 'chai'
import { openDatabase } from '../../../src/adapters/postgres/database.ts'
import { noteCreator, openCallersSeen } from '../../../src/commands/subscriptions/confirmation.ts'
import { currentAccount, workFor } from '../../../src/fairness/currentAccount.ts'
import { createLedgerTables } from '../../../src/feeds/ledgerTables.ts'
import type { Database, Sql } from '../../../src/ports.ts'
import { eventually } from '../../support/eventually.ts'
import { newDatabase } from '../../support/postgres.ts'

const ANN = { tenant: 'acme', subject: 'ann', client: 'shop' }
const FIRST_DAY = '2026-03-01'
const DAY_MS = 24 * 60 * 60 * 1000

describe('the callers that were seen', () => {
  let database: Database
  before(async () => {
    database = openDatabase({ connectionString: await newDatabase() })
    await createLedgerTables(database)
  })
  beforeEach(() => database.sql('delete from subscription_creators'))
  after(() => database.close())

  /** A process whose sleeps take no time. */
  const open = (fail = false) => {
    const state = { nowMs: Date.parse(FIRST_DAY), fail, statements: 0, accounts: new Set<unknown>(), failures: 0 }
    const sql: Sql = (text, values) => {
      state.statements += 1
      state.accounts.add(currentAccount())
      if (state.fail) throw new Error('planted')
      return database.sql(text, values)
    }
    const seen = openCallersSeen({
      database: { sql },
      world: { now: () => state.nowMs, sleep: () => new Promise(resolve => setTimeout(resolve, 1)) },
      onFailure: () => {
        state.failures += 1
      },
    })
    return { state, ...seen }
  }
  const days = async () =>
    (
      await database.sql<{ id: string; day: string }>(
        'select subscription_id as id, seen_on::text as day from subscription_creators order by 1',
      )
    ).map(({ id, day }) => [id, day])

  it('confirm their subscriptions and no others, once a day', async () => {
    await noteCreator(database.sql, 'sub_1', ANN, '2026-01-01')
    await noteCreator(database.sql, 'sub_2', { ...ANN, client: 'till' }, '2026-01-01')
    await noteCreator(database.sql, 'sub_3', { ...ANN, tenant: 'globex' }, '2026-01-01')
    await noteCreator(database.sql, 'sub_1', ANN, '2026-02-02')
    const others = [
      ['sub_2', '2026-01-01'],
      ['sub_3', '2026-01-01'],
    ]
    expect(await days(), 'the first day stays').to.deep.equal([['sub_1', '2026-01-01'], ...others])
    const { state, note, close } = open()
    for (let request = 0; request < 100; request += 1) note(ANN)
    await eventually(async () => (await days())[0]?.[1] === FIRST_DAY)
    for (let request = 0; request < 100; request += 1) note(ANN)
    await new Promise(resolve => setTimeout(resolve, 50))
    expect(state.statements).to.equal(1)
    state.nowMs += DAY_MS
    note(ANN)
    await close()
    expect(await days()).to.deep.equal([['sub_1', '2026-03-02'], ...others])
    expect(state.statements).to.equal(2)
  })

  it('are noted outside the queue of their tenant, and make no rows', async () => {
    const { state, note, close } = open()
    for (let n = 0; n < 1_000; n += 1)
      workFor({ tenant: 'acme', caller: `${n}` }, () => note({ ...ANN, subject: `user-${n}` }))
    await eventually(() => state.statements > 0)
    await close()
    expect([...state.accounts]).to.deep.equal([undefined])
    expect(await days()).to.deep.equal([])
  })

  it('are noted later when Postgres does not answer', async () => {
    await noteCreator(database.sql, 'sub_1', ANN, '2026-01-01')
    const { state, note, close } = open(true)
    note(ANN)
    await eventually(() => state.failures > 1)
    state.fail = false
    await eventually(async () => (await days())[0]?.[1] === FIRST_DAY)
    await close()
  })
})
