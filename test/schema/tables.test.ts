import { expect } from 'chai'
import { openDatabase } from '../../src/adapters/postgres/database.ts'
import { createLedgerTables } from '../../src/feeds/ledgerTables.ts'
import { Unavailable } from '../../src/ports.ts'
import { ADVISORY_LOCKS } from '../../src/schema/locks.ts'
import { newDatabase } from '../support/postgres.ts'

const STATEMENT_TIMEOUT_MS = 200
const LOCKED_S = 1

describe('the creation of missing tables', () => {
  it('waits for a process that creates them at the same time, for longer than a statement may take', async () => {
    const connectionString = await newDatabase()
    const first = openDatabase({ connectionString, statementTimeoutMs: 60_000 })
    const second = openDatabase({ connectionString, statementTimeoutMs: STATEMENT_TIMEOUT_MS })
    try {
      const order: string[] = []
      let holdsLock = (): void => undefined
      const held = new Promise<void>(resolve => (holdsLock = resolve))
      const slow = first.transaction(async sql => {
        await sql('select pg_advisory_xact_lock($1)', [ADVISORY_LOCKS.operationalTables])
        holdsLock()
        await sql(`select from pg_sleep(${LOCKED_S})`)
        order.push('first')
      })
      await held
      await createLedgerTables(second).then(() => order.push('second'))
      await slow
      expect(order).to.deep.equal(['first', 'second'])
      expect(await second.sql('select name from checkpoints')).to.deep.equal([])
    } finally {
      await Promise.all([first.close(), second.close()])
    }
  })

  it('is repeated while Postgres does not answer, and creates everything once', async () => {
    const database = openDatabase({ connectionString: await newDatabase(), statementTimeoutMs: 60_000 })
    const unanswered: Unavailable['effect'][] = ['none', 'unknown']
    // The last of the two has been committed, and its response was lost.
    const transaction: typeof database.transaction = async (work, timeoutMs) => {
      const effect = unanswered.shift()
      if (effect === 'none') throw new Unavailable('database', { effect })
      const result = await database.transaction(work, timeoutMs)
      if (effect === 'unknown') throw new Unavailable('database', { effect })
      return result
    }
    try {
      await createLedgerTables({ transaction })
      expect(unanswered).to.deep.equal([])
      expect(await database.sql('select name from checkpoints')).to.deep.equal([])
    } finally {
      await database.close()
    }
  })

  it('does not repeat an error of the statements', async () => {
    let calls = 0
    const transaction = async (): Promise<never> => {
      calls += 1
      throw new Error('syntax error')
    }
    const failure = await createLedgerTables({ transaction }).catch((error: unknown) => error)
    expect(failure).to.be.an('error').with.property('message', 'syntax error')
    expect(calls).to.equal(1)
  })
})
