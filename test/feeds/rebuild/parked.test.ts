import { expect } from 'chai'
import { partsOf } from '../../../streams/aggregate.ts'
import { projectorOf } from '../../../src/feeds/projector.ts'
import type { Run } from '../../../src/feeds/feedLoop.ts'
import { deadLetterSummary, type DeadLetterRequest, requestForDeadLetters } from '../../../src/feeds/deadLetters.ts'
import type { ReadModel } from '../../../src/feeds/readModel.ts'
import { readModels } from '../../../src/feeds/readModels.ts'
import { acceptDifferences } from '../../../src/feeds/rebuild/requests.ts'
import type { Database, StoredEvent } from '../../../src/ports.ts'
import { eventually } from '../../support/eventually.ts'
import type { MemoryLog } from '../../support/memoryStore.ts'
import { createRebuildHarness, type RebuildHarness, watchedStore } from './rebuildHarness.ts'
import { fillLog, foldedRows, rowsIn, useTestPostgres } from '../fixtures.ts'

describe('a rebuild of a read model with dead letters', () => {
  const postgres = useTestPostgres()
  let log: MemoryLog
  let database: Database
  let harness: RebuildHarness
  let poison: StoredEvent
  let key: string
  let isBroken: boolean
  let run: Run
  let stop: AbortController
  let serving: Promise<void> | undefined

  /** Payments that cannot write the poison until it is mended. */
  const models = (): readonly ReadModel[] =>
    readModels.map(model => ({
      ...model,
      write: (sql, events) => {
        const hasPoison = events.some(({ id, revision }) => id === key && revision === poison.revision)
        if (isBroken && model.name === 'payments_v1' && hasPoison) throw new TypeError('a bug')
        return model.write(sql, events)
      },
    }))

  /** Projects the log with the bug, and serves the requests of operators. */
  const project = async (): Promise<void> => {
    stop = new AbortController()
    const feed = projectorOf({ database, store: log.open(), world: harness.world }, models(), (name, error) =>
      expect.fail(`${name}: ${String(error)}`),
    )
    run = await feed.beginRun(1n, stop.signal)
    await run.processBatch(log.events, log.head())
    serving = run.background?.()
  }
  const parkedCount = async (): Promise<number> =>
    Number((await deadLetterSummary(database.sql)).find(of => of.key === key)?.waiting ?? 0n)
  const ask = async (requested: DeadLetterRequest): Promise<void> => {
    await requestForDeadLetters(database.sql, { delivery: 'payments_v1', key }, requested)
    await eventually(async () => (await parkedCount()) === 0)
  }
  /** Parks the event of this revision of a payment with three events. */
  const begin = async (revision: number): Promise<void> => {
    const ofPayments = Map.groupBy(
      log.events.filter(({ stream }) => stream.startsWith('payment-')),
      ({ stream }) => stream,
    )
    const events = ofPayments.values().find(({ length }) => length > revision) ?? []
    poison = events[revision] ?? expect.fail('no such payment')
    key = partsOf(poison.stream).id
    isBroken = true
    await project()
    expect(await parkedCount()).to.equal(events.length - revision)
  }
  const rows = () => rowsIn(database, 'payments_v1')

  beforeEach(async () => {
    log = await fillLog(6)
    database = await postgres.ledgerDatabase()
    harness = createRebuildHarness(database, log)
  })
  afterEach(async () => {
    stop.abort()
    await serving
  })

  for (const revision of [0, 1]) {
    it(`at revision ${revision} holds them too, and they are replayed into the new tables`, async () => {
      await begin(revision)
      const before = await rows()
      const id = await harness.request('rebuild', 'payments')
      await harness.execute({ models: models() })
      const { state, difference, error } = await harness.row(id)
      expect([state, difference, error]).to.deep.equal(['succeeded', null, null])
      expect(await rows()).to.deep.equal(before)
      isBroken = false
      await ask('replay')
      expect(await rows()).to.deep.equal((await foldedRows(log)).payments_v1)
    })

    for (const requested of ['replay', 'discard'] as const)
      it(`at revision ${revision} has equal rows when a ${requested} of them ends while it runs`, async () => {
        await begin(revision)
        const id = await harness.request('rebuild', 'payments')
        let isRequested = false
        const asking = watchedStore(log, async count => {
          if (count < 10 || isRequested) return
          isRequested = true
          isBroken = requested === 'discard'
          await ask(requested)
        })
        await harness.execute({ models: models(), store: asking })
        const { state, difference, error } = await harness.row(id)
        expect([isRequested, state, difference, error]).to.deep.equal([true, 'succeeded', null, null])
      })

    it(`at revision ${revision} that were discarded leaves them out`, async () => {
      await begin(revision)
      await ask('discard')
      const before = await rows()
      const id = await harness.request('rebuild', 'payments')
      await harness.execute({ models: models() })
      expect([(await harness.row(id)).state, await rows()]).to.deep.equal(['succeeded', before])
    })

    it(`at revision ${revision} that are replayed after the switch are in the tables of a roll-back`, async () => {
      await begin(revision)
      await harness.request('rebuild', 'payments')
      await harness.execute({ models: models() })
      isBroken = false
      await ask('replay')
      await harness.request('rollback', 'payments')
      await harness.execute({ models: models() })
      expect(await rows()).to.deep.equal((await foldedRows(log)).payments_v1)
    })
  }

  it('fails at an event that only the rebuild cannot process, and says which; the live tables stay', async () => {
    await begin(1)
    isBroken = false
    await ask('replay')
    isBroken = true
    const id = await harness.request('rebuild', 'payments')
    await harness.execute({ models: models() })
    const { state, error } = await harness.row(id)
    expect([state, error]).to.deep.equal(['failed', 'TypeError: a bug'])
    expect(await rows()).to.deep.equal((await foldedRows(log)).payments_v1)
    expect(await acceptDifferences(database.sql, id, 'none')).to.equal(false)
  })
})
