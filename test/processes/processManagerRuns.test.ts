import { expect } from 'chai'
import { orderEntity } from '../../src/commands/entities.ts'
import { createLedger, handle } from '../../src/commands/commandHandler.ts'
import { runFeeds } from '../../src/feeds/feedLoop.ts'
import { type Database, Unavailable } from '../../src/ports.ts'
import { feedOf, type ProcessManager } from '../../src/processes/processManager.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import { context } from '../commands/fixtures.ts'
import { createReports, useTestPostgres } from '../feeds/fixtures.ts'
import { eventually } from '../support/eventually.ts'
import { createOrder, id } from '../streams/samples.ts'
import { createMemoryLog } from '../support/memoryStore.ts'

describe('a process manager whose run fails', () => {
  const postgres = useTestPostgres()

  /** A database on which the next move of a checkpoint fails after `fail` was called. */
  const failing = (database: Database) => {
    let failures = 0
    let failed = 0
    const sql: Database['sql'] = (text, values) => {
      if (failures === 0 || !text.includes('update checkpoints')) return database.sql(text, values)
      failures -= 1
      failed += 1
      return Promise.reject(new Unavailable('database', { effect: 'none' }))
    }
    return { database: { ...database, sql }, fail: () => void (failures += 1), failed: () => failed }
  }

  it('ends the current task before the next run begins, which then finishes the others', async () => {
    const log = createMemoryLog()
    const ledger = createLedger(log.open(), realWorld())
    const { database, fail, failed } = failing(await postgres.ledgerDatabase())
    const held = Promise.withResolvers<void>()
    const begun: string[] = []
    const finished: string[] = []
    const process: ProcessManager = {
      name: 'watching',
      categories: ['order'],
      begins: ({ id: key }) => ({
        key,
        graceMs: 0,
        finish: async () => {
          begun.push(key)
          if (begun.length === 1) await held.promise
          finished.push(key)
        },
      }),
      ends: () => undefined,
    }
    const create = (n: number) =>
      handle(ledger, orderEntity, id('ord', n), { command: createOrder, context: context(), load: 'assume_empty' })
    const reports = createReports()
    const stop = new AbortController()
    const dependencies = { store: log.open(), database, world: realWorld(), report: reports.report }
    const running = runFeeds(
      'tests',
      [feedOf(process, { database, ledger, onFailure: () => undefined })],
      dependencies,
      stop.signal,
    )

    try {
      await create(1)
      await eventually(() => begun.length === 1)
      fail()
      await create(2)
      await eventually(() => failed() === 1)
      const reported = reports.states.length
      // A run that does not wait would begin and read the log again in this time.
      await realWorld().sleep(500)
      expect(reports.states.slice(reported).filter(({ state }) => state === 'live')).to.deep.equal([])
      expect(finished).to.deep.equal([])
      held.resolve()
      await eventually(() => finished.includes(id('ord', 2)))
    } finally {
      held.resolve()
      stop.abort()
      await running
    }
  })
})
