import { expect } from 'chai'
import { orderEntity } from '../../src/commands/entities.ts'
import { RECOVERY_APPENDS_MS } from '../../src/commands/timeBudgets.ts'
import { Contended, handle } from '../../src/commands/commandHandler.ts'
import { Unavailable } from '../../src/ports.ts'
import { feedOf, type ProcessManager } from '../../src/processes/processManager.ts'
import { context } from '../commands/fixtures.ts'
import { createOrder, id } from '../streams/samples.ts'
import { type DrivenRun, useProcessHarness } from './harness.ts'

const GRACE_MS = 1_000
/** The pause after a failure that is no outage. */
const RETRY_MS = 30_000

describe('a process manager', function () {
  this.timeout(60_000)
  const harness = useProcessHarness()
  let process: DrivenRun
  let finished: string[]
  let failures: [string, unknown][]
  /** The failures of tasks, by key. */
  let troubles: Map<string, Error>

  /** An order that is created begins a task; its deletion ends it. */
  const watching: ProcessManager = {
    name: 'watching',
    categories: ['order'],
    begins: ({ id: key, event }) =>
      event.type === 'OrderCreated'
        ? {
            key,
            graceMs: GRACE_MS,
            finish: () => {
              const trouble = troubles.get(key)
              if (trouble) return Promise.reject(trouble)
              finished.push(key)
              return Promise.resolve()
            },
          }
        : undefined,
    ends: ({ id: key, event }) => (event.type === 'OrderDeleted' ? key : undefined),
  }
  const begin = (n: number) =>
    handle(harness.ledger, orderEntity, id('ord', n), { command: createOrder, context: context(), isNew: true })
  const end = (n: number) =>
    handle(harness.ledger, orderEntity, id('ord', n), { command: { type: 'DeleteOrder' }, context: context() })
  const checkpoint = () => harness.checkpoint('watching')

  beforeEach(async () => {
    finished = []
    failures = []
    troubles = new Map()
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
      troubles.set(id('ord', 1), bug)
      await begin(1)
      await begin(2)
      await process.processNew()
      await harness.world.pass(GRACE_MS)
    })

    it('reports it, and finishes the others', () => {
      expect(failures).to.deep.equal([[id('ord', 1), bug]])
      expect(finished).to.deep.equal([id('ord', 2)])
    })

    it('tries again, later', async () => {
      troubles.clear()
      await harness.world.pass(RETRY_MS - 1)
      expect(finished).to.deep.equal([id('ord', 2)])
      await harness.world.pass(1)
      expect(finished).to.deep.equal([id('ord', 2), id('ord', 1)])
    })

    it('finds it again after a restart', async () => {
      await begin(3)
      await process.processNew()
      expect((await checkpoint()) < (harness.log.events[0]?.position ?? 0n)).to.equal(true)
    })
  })

  it('tries again soon what has only lost its races', async () => {
    troubles.set(id('ord', 1), new Contended('order-1'))
    await begin(1)
    await process.processNew()
    await harness.world.pass(GRACE_MS)
    troubles.clear()
    await harness.world.pass(RECOVERY_APPENDS_MS)
    expect(finished).to.deep.equal([id('ord', 1)])
  })

  it('stops at an outage, and the next run finds the task again', async () => {
    const outage = new Unavailable('event store', 'none', undefined)
    troubles.set(id('ord', 1), outage)
    await begin(1)
    await process.processNew()
    await harness.world.pass(GRACE_MS)
    expect(
      await process.background.then(
        () => undefined,
        (error: unknown) => error,
      ),
    ).to.equal(outage)
    expect(failures).to.deep.equal([])
    expect((await checkpoint()) < (harness.log.events[0]?.position ?? 0n)).to.equal(true)
  })
})
