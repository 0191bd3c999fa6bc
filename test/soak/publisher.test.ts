import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { orderEntity } from '../../src/commands/entities.ts'
import { createLedger, handle, type Ledger } from '../../src/commands/commandHandler.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import { context } from '../commands/fixtures.ts'
import { duplicatesIn, expectNothingButDuplicates, observeFacts } from '../faults/observedFacts.ts'
import { openPublisherHarness, type Publisher, type PublisherHarness } from '../faults/publisherHarness.ts'
import { createOrder, id } from '../streams/samples.ts'
import { inParallel } from '../support/client.ts'
import { describeWithOwnBroker } from '../support/kafka.ts'

const FACTS = 100_000
const FACTS_PER_ORDER = 2
const KILLS = 50
const LIFE_MAX_MS = 2_500
const OUTAGE_MS = 120_000
const LOSSES_MS = 30_000
const LOSS_PROBABILITY = 0.2
const CONCURRENCY = 64
const TENANTS = ['acme', 'globex'] as const

describeWithOwnBroker('100,000 facts through kills, an outage and lost acknowledgements', function () {
  this.timeout(1_800_000)

  let harness: PublisherHarness
  let ledger: Ledger
  const report = (line: string): void => void process.stdout.write(`      ${line}\n`)

  before(async () => {
    harness = await openPublisherHarness()
    ledger = createLedger(harness.store, realWorld())
  })
  after(() => harness.close())

  /** Two facts of one key: an order is created and cancelled. */
  const cancelledOrder = async (n: number): Promise<void> => {
    const tenant = TENANTS[n % TENANTS.length] ?? TENANTS[0]
    const orderId = id('ord', n)
    await handle(ledger, orderEntity, orderId, {
      command: createOrder,
      context: context({ tenant }),
      load: 'assume_empty',
    })
    await handle(ledger, orderEntity, orderId, {
      command: { type: 'CancelOrder', reason: null },
      context: context({ tenant }),
    })
  }
  const commit = async (from: number, to: number): Promise<void> => {
    await inParallel(
      CONCURRENCY,
      Array.from({ length: to - from }, (_, index) => from + index),
      cancelledOrder,
    )
  }

  it('are all in their topics in the order of their keys, beside nothing but duplicates', async () => {
    const orders = FACTS / FACTS_PER_ORDER
    const third = Math.ceil(orders / 3)
    let kills = 0
    const killing = (async () => {
      while (kills < KILLS) {
        const publisher: Publisher = await harness.startPublisher()
        await delay(Math.random() * LIFE_MAX_MS)
        await publisher.end('SIGKILL')
        kills += 1
      }
    })()
    await Promise.all([commit(0, third), killing])
    report(`killed ${kills} times; now the broker is unreachable for ${OUTAGE_MS / 1_000} s`)

    await harness.startPublisher()
    await harness.cutBroker()
    await Promise.all([commit(third, 2 * third), delay(OUTAGE_MS)])
    await harness.reconnectBroker()

    harness.proxy.loseAnswers(LOSS_PROBABILITY)
    await Promise.all([commit(2 * third, orders), delay(LOSSES_MS)])
    harness.proxy.loseAnswers(0)
    report(`${harness.proxy.lost()} responses of the broker were lost`)

    const observed = await observeFacts(harness, TENANTS)
    report(
      `${observed.committed.length} facts, ${observed.published.length} messages, ${duplicatesIn(observed)} of them duplicates`,
    )
    expect(observed.committed.length).to.equal(FACTS)
    expect(harness.proxy.lost()).to.be.greaterThan(0)
    expect(duplicatesIn(observed)).to.be.greaterThan(0)
    expectNothingButDuplicates(observed)
  })
})
