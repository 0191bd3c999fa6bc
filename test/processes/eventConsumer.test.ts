import { expect } from 'chai'
import { operationEntity, orderEntity } from '../../src/commands/entities.ts'
import { createLedger, handle, type Ledger } from '../../src/commands/commandHandler.ts'
import { deadLetterSummary, requestForDeadLetters } from '../../src/feeds/deadLetters.ts'
import { type Feed, runFeeds } from '../../src/feeds/feedLoop.ts'
import type { JsonObject, StoredEvent } from '../../src/ports.ts'
import { exportsFeed } from '../../src/processes/exports/exports.ts'
import { createTimer } from '../../src/feeds/timer.ts'
import { openConsumer } from '../../src/processes/eventConsumer.ts'
import { feedOf } from '../../src/processes/processManager.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import { context } from '../commands/fixtures.ts'
import { createReports, type Reports } from '../feeds/fixtures.ts'
import { eventually } from '../support/eventually.ts'
import { createOrder, id, requestExport } from '../streams/samples.ts'
import { useProcessHarness, watchOrders } from './harness.ts'

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

describe('the event consumer of a process', () => {
  const harness = useProcessHarness()
  let ledger: Ledger
  let reports: Reports
  let stop: AbortController
  let running: Promise<void>
  let finished: string[]
  let broken: Set<string>

  const watching = watchOrders(0, async key => {
    if (broken.has(key)) throw new Error('It cannot be finished.')
    finished.push(key)
  })
  const watch = (): Feed => feedOf(watching, { database: harness.database, ledger, onFailure: () => undefined })
  const start = (feed = watch()): void => {
    stop = new AbortController()
    reports = createReports()
    const { database, log } = harness
    const dependencies = { store: log.open(), database, world: realWorld(), report: reports.report }
    running = runFeeds('tests', [feed], dependencies, stop.signal)
  }
  const end = async (): Promise<void> => {
    stop.abort()
    await running
  }
  const createOne = (n: number) =>
    handle(ledger, orderEntity, id('ord', n), { command: createOrder, context: context(), load: 'assume_empty' })
  const cancel = (n: number) =>
    handle(ledger, orderEntity, id('ord', n), { command: { type: 'CancelOrder', reason: 'R' }, context: context() })
  const checkpoint = async (name = 'watching'): Promise<bigint> => {
    const [row] = await harness.database.sql<{ position: bigint }>('select position from checkpoints where name = $1', [
      name,
    ])
    return row?.position ?? -1n
  }
  const caughtUp = () =>
    eventually(() => reports.states.at(-1)?.position === (harness.log.events.at(-1)?.position ?? 0n))
  const errors = () => reports.states.flatMap(({ error }) => (error === undefined ? [] : [error]))
  const waiting = async () =>
    (await deadLetterSummary(harness.database.sql)).map(({ key, waiting: count }) => [key, Number(count)])
  const request = (n: number, action: 'replay' | 'discard', only?: bigint) =>
    requestForDeadLetters(harness.database.sql, { delivery: 'watching', key: id('ord', n) }, action, only)
  /** Makes an event undecodable; `mend` reverts that, as a newer build would. */
  const spoil = (stored: StoredEvent): { mend: () => void } => {
    const { data } = stored
    Object.assign(stored, { data: { nothing: 'known' } satisfies JsonObject })
    return { mend: () => void Object.assign(stored, { data }) }
  }
  const newest = (): StoredEvent => {
    const stored = harness.log.events.at(-1)
    if (stored === undefined) throw new Error('The log is empty.')
    return stored
  }

  beforeEach(async () => {
    ledger = createLedger(harness.log.open(), realWorld())
    finished = []
    broken = new Set()
  })
  afterEach(async () => stop && end())

  describe('moves the checkpoint to positions of events alone', () => {
    it('while a task is open, namely to the last event before the oldest task, or to the beginning', async () => {
      broken = new Set([id('ord', 1)])
      await createOne(1)
      start()
      await caughtUp()
      expect(await checkpoint()).to.equal(-1n)
      await end()
      start()
      await caughtUp()
      broken = new Set([id('ord', 3)])
      await eventually(() => finished.includes(id('ord', 1)))
      await createOne(2)
      await createOne(3)
      await createOne(4)
      await caughtUp()
      await eventually(() => finished.includes(id('ord', 4)))
      await cancel(4)
      await caughtUp()
      expect(await checkpoint()).to.equal(harness.log.events[1]?.position)
      await end()
      start()
      await caughtUp()
      expect(errors()).to.deep.equal([])
    })

    it('while an export is open', async () => {
      await createOne(1)
      start(exportsFeed({ database: harness.database, ledger, formats: {} as never, logger: silent }))
      const operation = id('op', 1)
      await handle(ledger, operationEntity, operation, {
        command: requestExport,
        context: context(),
        load: 'assume_empty',
      })
      await createOne(2)
      await caughtUp()
      expect(await checkpoint('exports')).to.be.oneOf([-1n, harness.log.events[0]?.position])
      await end()
      start(exportsFeed({ database: harness.database, ledger, formats: {} as never, logger: silent }))
      await caughtUp()
      expect(errors()).to.deep.equal([])
    })
  })

  describe('parks an event that it cannot decode', () => {
    it('with every later event of its key, and continues with all others', async () => {
      await createOne(1)
      spoil(newest())
      await createOne(2)
      await cancel(1)
      start()
      await eventually(() => finished.includes(id('ord', 2)))
      await caughtUp()
      expect(await waiting()).to.deep.equal([[id('ord', 1), 2]])
      expect(finished).to.deep.equal([id('ord', 2)])
      expect(errors()).to.deep.equal([])
    })

    it('and receives it when an operator requests a replay and it can be decoded', async () => {
      await createOne(1)
      const { mend } = spoil(newest())
      start()
      await caughtUp()
      mend()
      await request(1, 'replay')
      await eventually(async () => (await waiting()).length === 0)
      expect(finished).to.deep.equal([id('ord', 1)])
      await createOne(2)
      await eventually(() => finished.includes(id('ord', 2)))
    })

    it('and keeps it, with the error, when its task cannot be finished', async () => {
      await createOne(1)
      const { mend } = spoil(newest())
      broken.add(id('ord', 1))
      start()
      await caughtUp()
      mend()
      await request(1, 'replay')
      await eventually(
        async () => (await deadLetterSummary(harness.database.sql))[0]?.reason === 'Error: It cannot be finished.',
      )
      broken.clear()
      await request(1, 'replay')
      await eventually(async () => (await waiting()).length === 0)
      expect(finished).to.deep.equal([id('ord', 1)])
    })

    it('and replays it when a run begins, which may be of a newer build', async () => {
      await createOne(1)
      const { mend } = spoil(newest())
      start()
      await caughtUp()
      await end()
      mend()
      start()
      await eventually(() => finished.includes(id('ord', 1)))
      await eventually(async () => (await waiting()).length === 0)
    })

    it('and ignores it after it was discarded, also when a later run reads it again', async () => {
      broken.add(id('ord', 1))
      await createOne(1)
      await createOne(2)
      spoil(newest())
      await createOne(3)
      start()
      await eventually(() => finished.includes(id('ord', 3)))
      await request(2, 'discard')
      await eventually(async () => (await waiting()).length === 0)
      await end()
      expect(await checkpoint()).to.equal(-1n)
      start()
      await caughtUp()
      expect(await waiting()).to.deep.equal([])
      await end()
      broken.clear()
      start()
      await eventually(() => finished.includes(id('ord', 1)))
      await createOne(4)
      await eventually(async () => (await checkpoint()) === harness.log.events[2]?.position)
      await end()
      start()
      await caughtUp()
      expect(await harness.database.sql('select * from discarded_events')).to.deep.equal([])
    })

    it('and ignores it when the run that discarded it reads it again', async () => {
      await createOne(1)
      spoil(newest())
      const { database, log } = harness
      const world = realWorld()
      const tasks = {
        resumeAfter: () => 'start' as const,
        isOpenFor: () => false,
        takeFinished: () => ({ done: [], failed: [] }),
      }
      const open = () =>
        openConsumer(
          { name: 'watching', database, store: log.open(), world, epoch: 1n, timer: createTimer(world) },
          { tasks, receive: () => expect.fail('The event cannot be decoded.') },
        )
      const first = await open()
      await first.processBatch([newest()], newest().position)
      expect(await waiting()).to.deep.equal([[id('ord', 1), 1]])
      await request(1, 'discard', newest().position)
      const second = await open()
      await second.serve()
      expect(await waiting()).to.deep.equal([])
      await second.processBatch([newest()], newest().position)
      expect(await waiting()).to.deep.equal([])
    })

    it('and receives earlier events of its key when a later run reads them again', async () => {
      broken.add(id('ord', 1))
      await createOne(1)
      await cancel(1)
      spoil(newest())
      start()
      await caughtUp()
      await end()
      broken.clear()
      start()
      await eventually(() => finished.includes(id('ord', 1)))
      expect(await waiting()).to.deep.equal([[id('ord', 1), 1]])
    })
  })
})
