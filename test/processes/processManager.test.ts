import { expect } from 'chai'
import { orderEntity } from '../../src/commands/entities.ts'
import { RECOVERY_APPENDS_MS } from '../../src/processes/recoveryTimes.ts'
import { Contended, handle } from '../../src/commands/commandHandler.ts'
import { Unavailable } from '../../src/ports.ts'
import { feedOf } from '../../src/processes/processManager.ts'
import { context } from '../commands/fixtures.ts'
import { createOrder, id } from '../streams/samples.ts'
import { rejectionOf } from '../support/rejection.ts'
import { type DrivenRun, useProcessHarness, watchOrders } from './harness.ts'

const GRACE_MS = 1_000
/** The pause after a failure that is not an outage. */
const RETRY_MS = 30_000

describe('a process manager', () => {
  const harness = useProcessHarness()
  let process: DrivenRun
  let finished: string[]
  let failures: [string, unknown][]
  /** The errors with which tasks fail, by key. */
  let errors: Map<string, Error>

  const watching = watchOrders(GRACE_MS, async key => {
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
    errors = new Map()
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

  it('stops at an outage, and the next run finds the task again', async () => {
    const outage = new Unavailable('event store', { effect: 'none' })
    errors.set(id('ord', 1), outage)
    await begin(1)
    await process.processNew()
    await harness.world.pass(GRACE_MS)
    expect(await rejectionOf(process.background)).to.equal(outage)
    expect(failures).to.deep.equal([])
    expect((await checkpoint()) < (harness.log.events[0]?.position ?? 0n)).to.equal(true)
  })
})
