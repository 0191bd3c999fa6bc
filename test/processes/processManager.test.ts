import { expect } from 'chai'
import { orderEntity } from '../../src/commands/entities.ts'
import { RECOVERY_APPENDS_MS, RECOVERY_TICK_MS } from '../../src/processes/recoveryTimes.ts'
import { Contended, handle } from '../../src/commands/commandHandler.ts'
import { Unavailable } from '../../src/ports.ts'
import { feedOf } from '../../src/processes/processManager.ts'
import { context } from '../commands/fixtures.ts'
import { createOrder, id } from '../streams/samples.ts'
import { eventually } from '../support/eventually.ts'
import { type DrivenRun, useProcessHarness, watchOrders } from './harness.ts'

const GRACE_MS = 1_000
/** The pause after a failure that is not an outage. */
const RETRY_MS = 30_000
const AT_ONCE_MAX = 16

describe('a process manager', () => {
  const harness = useProcessHarness()
  let process: DrivenRun
  let finished: string[]
  let failures: [string, unknown][]
  let tried: string[]
  /** The errors with which tasks fail, by key. */
  let errors: Map<string, Error>
  /** What tasks wait for, by key. */
  let held: Map<string, Promise<void>>

  const watching = watchOrders(GRACE_MS, async key => {
    tried.push(key)
    await held.get(key)
    const error = errors.get(key)
    if (error) throw error
    finished.push(key)
  })
  const begin = (n: number) =>
    handle(harness.ledger, orderEntity, id('ord', n), {
      command: createOrder,
      context: context(),
      load: 'assume_empty',
    })
  const end = (n: number) =>
    handle(harness.ledger, orderEntity, id('ord', n), { command: { type: 'DeleteOrder' }, context: context() })
  const checkpoint = () => harness.checkpoint('watching')

  beforeEach(async () => {
    finished = []
    failures = []
    tried = []
    errors = new Map()
    held = new Map()
    const { database, ledger } = harness
    const onFailure = (key: string, error: unknown): void => void failures.push([key, error])
    process = await harness.start(feedOf(watching, { database, ledger, onFailure }))
  })

  it('finishes a task that was not ended in time, once', async () => {
    await begin(1)
    await process.processNew()
    await harness.world.pass(GRACE_MS)
    await harness.world.pass(10 * GRACE_MS)
    expect(finished).to.deep.equal([id('ord', 1)])
  })

  it('does not finish a task that was ended in time, in the same batch or in a later one', async () => {
    await begin(1)
    await end(1)
    await begin(2)
    await process.processNew()
    await end(2)
    await process.processNew()
    await harness.world.pass(10 * GRACE_MS)
    expect(finished).to.deep.equal([])
    expect(await checkpoint()).to.equal(harness.log.head())
  })

  it('moves its checkpoint past a task that it has finished, although nothing is appended then', async () => {
    await begin(1)
    await process.processNew()
    expect((await checkpoint()) < harness.log.head()).to.equal(true)
    await harness.world.pass(GRACE_MS)
    await eventually(async () => (await checkpoint()) === harness.log.head(), 10_000)
  })

  it('finishes many, each once', async () => {
    for (let n = 1; n <= 50; n += 1) await begin(n)
    await process.processNew()
    await harness.world.pass(GRACE_MS)
    expect(finished.toSorted()).to.deep.equal(Array.from({ length: 50 }, (_, n) => id('ord', n + 1)))
  })

  describe('with a task that cannot be finished', () => {
    const bug = new Error('a bug')

    beforeEach(async () => {
      errors.set(id('ord', 1), bug)
      await begin(1)
      await begin(2)
      await process.processNew()
      await harness.world.pass(GRACE_MS)
    })

    it('reports the error, and finishes the others', () => {
      expect(failures).to.deep.equal([[id('ord', 1), bug]])
      expect(finished).to.deep.equal([id('ord', 2)])
    })

    it('tries it again later', async () => {
      errors.clear()
      await harness.world.pass(RETRY_MS - 1)
      expect(finished).to.deep.equal([id('ord', 2)])
      await harness.world.pass(1)
      expect(finished).to.deep.equal([id('ord', 2), id('ord', 1)])
    })

    it('keeps its checkpoint before the task, so that a restart finds it again', async () => {
      await begin(3)
      await process.processNew()
      expect((await checkpoint()) < (harness.log.events[0]?.position ?? 0n)).to.equal(true)
    })
  })

  it('tries a task again soon that failed for concurrent writers alone', async () => {
    errors.set(id('ord', 1), new Contended('order-1'))
    await begin(1)
    await process.processNew()
    await harness.world.pass(GRACE_MS)
    errors.clear()
    await harness.world.pass(RECOVERY_APPENDS_MS)
    expect(finished).to.deep.equal([id('ord', 1)])
  })

  describe('with tasks whose dependencies do not answer', () => {
    const outage = new Unavailable('event store', { effect: 'none' })

    const beginAll = async (count: number): Promise<void> => {
      for (let n = 1; n <= count; n += 1) await begin(n)
      await process.processNew()
      await harness.world.pass(GRACE_MS)
    }

    it('finishes the others, though more are without an answer than are tried at once', async () => {
      for (let n = 1; n <= 20; n += 1) errors.set(id('ord', n), outage)
      await beginAll(21)
      await harness.world.pass(RECOVERY_TICK_MS)
      expect(finished).to.deep.equal([id('ord', 21)])
    })

    it('finishes the others while one waits for its answer', async () => {
      const answer = Promise.withResolvers<void>()
      held.set(id('ord', 1), answer.promise)
      try {
        await beginAll(40)
        expect(finished).to.have.length(39)
      } finally {
        answer.resolve()
      }
    })

    it('tries few of them while none is answered', async () => {
      for (let n = 1; n <= 100; n += 1) errors.set(id('ord', n), outage)
      await beginAll(100)
      expect(tried).to.have.length(AT_ONCE_MAX)
    })

    it('finishes all of them soon after the dependency answers', async () => {
      for (let n = 1; n <= 40; n += 1) errors.set(id('ord', n), outage)
      await beginAll(40)
      expect(finished).to.deep.equal([])
      errors.clear()
      await harness.world.pass(RECOVERY_APPENDS_MS)
      expect(finished).to.have.length(40)
    })

    it('keeps its checkpoint before them, and reports one of them every 30 s', async () => {
      errors.set(id('ord', 1), outage)
      errors.set(id('ord', 2), outage)
      await beginAll(2)
      await harness.world.pass(RECOVERY_APPENDS_MS)
      expect(failures).to.deep.equal([[id('ord', 1), outage]])
      await harness.world.pass(RETRY_MS)
      expect(failures).to.have.length(2)
      await begin(3)
      await process.processNew()
      expect((await checkpoint()) < (harness.log.events[0]?.position ?? 0n)).to.equal(true)
    })
  })
})
