import { createHash } from 'node:crypto'
import { expect } from 'chai'
import { publishedBy } from '../../projections/facts/projection.ts'
import { MANIFEST_TOPICS, topicOf } from '../../projections/factTopics.ts'
import { orderEntity } from '../../src/commands/entities.ts'
import { createLedger, handle } from '../../src/commands/commandHandler.ts'
import { FACTS, manifestIdOf, sealManifest } from '../../src/commands/manifests.ts'
import { decode } from '../../src/feeds/decode.ts'
import { projectorOf } from '../../src/feeds/projector.ts'
import { readModels } from '../../src/feeds/readModels.ts'
import type { StoredEvent, World } from '../../src/ports.ts'
import { manifestsFeed, overdueMs } from '../../src/processes/manifests.ts'
import { context } from '../commands/fixtures.ts'
import { feedAll } from '../feeds/fixtures.ts'
import { createOrder, id } from '../streams/samples.ts'
import { eventually } from '../support/eventually.ts'
import { rejectionOf } from '../support/rejection.ts'
import { type DrivenRun, useProcessHarness } from './harness.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

type Sealed = {
  readonly topic: string
  readonly from_position: string
  readonly to_position: string
  readonly count: number
  readonly sha256: string
}

describe('the manifests process', () => {
  const harness = useProcessHarness()
  const running: DrivenRun[] = []
  let orders = 0
  let epoch = 0n
  let asleep = 0

  const start = async (): Promise<DrivenRun> => {
    epoch += 1n
    const { database, log, world } = harness
    const sleep: World['sleep'] = async (timeMs, signal) => {
      asleep += 1
      await world.sleep(timeMs, signal)
      asleep -= 1
    }
    const ledger = createLedger(log.open(), { ...world, sleep })
    const driven = await harness.start(manifestsFeed({ database, ledger, everyMs: HOUR_MS }), epoch)
    running.push(driven)
    await eventually(async () => asleep === running.length)
    return driven
  }
  const stop = async (one: DrivenRun): Promise<void> => {
    await one.stop()
    running.splice(running.indexOf(one), 1)
  }
  const order = async (tenant = 'acme'): Promise<void> => {
    orders += 1
    const at = new Date(harness.world.now()).toISOString()
    await handle(harness.ledger, orderEntity, id('ord', orders), {
      command: createOrder,
      context: context({ tenant, at }),
    })
  }
  const project = (): Promise<void> =>
    feedAll(
      projectorOf(
        { database: harness.database, store: harness.log.open(), world: harness.world },
        readModels,
        (_, error) => {
          throw error
        },
      ),
      harness.log,
    )
  const manifestsOf = (topic: string): StoredEvent[] =>
    harness.log.events.filter(({ stream }) => stream === `manifest-${manifestIdOf(topic)}`)
  const sealedOf = (topic: string): Sealed[] => manifestsOf(topic).map(({ data }) => data as Sealed)
  const all = () => MANIFEST_TOPICS.flatMap(sealedOf)
  /** Lets time pass, and waits until all work that was begun has ended. */
  const pass = async (timeMs: number): Promise<void> => {
    await harness.world.pass(timeMs)
    await eventually(async () => asleep === running.length)
  }
  const idsBetween = (category: string, from: bigint, to: bigint): string[] =>
    harness.log.events.flatMap(stored => {
      const decoded = decode(stored)
      const fact = publishedBy(decoded.category, decoded.recorded)
      const isWanted = decoded.category === category && stored.position >= from && stored.position <= to
      return isWanted && fact ? [stored.id] : []
    })
  const hashOf = (ids: readonly string[]): string =>
    createHash('sha256')
      .update(ids.map(one => `${one}\n`).join(''))
      .digest('hex')
  /** Expects each manifest of the topic to count the facts of the log in its range, and the ranges to be contiguous. */
  const expectExact = (category: string): void => {
    let next = 0n
    for (const { topic, from_position, to_position, count, sha256 } of sealedOf(topicOf(category))) {
      const ids = idsBetween(category, BigInt(from_position), BigInt(to_position))
      expect(BigInt(from_position)).to.equal(next)
      expect({ topic, count, sha256 }).to.deep.equal({
        topic: topicOf(category),
        count: ids.length,
        sha256: hashOf(ids),
      })
      next = BigInt(to_position) + 1n
    }
  }

  beforeEach(async () => {
    epoch = 0n
    // The virtual clock begins on the hour.
    await harness.world.pass(10 * MINUTE_MS)
  })
  afterEach(() => void running.splice(0))

  /** Seals an order in a run that is stopped afterwards. */
  const sealFirstHour = async (): Promise<void> => {
    await order()
    await project()
    const first = await start()
    await pass(HOUR_MS)
    await stop(first)
  }

  it('seals nothing in a ledger without facts, at any time', async () => {
    await start()
    await pass(5 * HOUR_MS)
    expect(harness.log.events).to.deep.equal([])
  })

  it('seals every topic at the end of the hour, and not before', async () => {
    await order('acme')
    await order('other')
    await project()
    await start()
    await pass(50 * MINUTE_MS - 1)
    expect(all()).to.deep.equal([])
    await pass(1)
    const reached = await harness.checkpoint(FACTS)
    for (const topic of MANIFEST_TOPICS) {
      const count = topic === 'ledger.order.v1' ? 2 : 0
      expect(sealedOf(topic)).to.have.length(1)
      expect(sealedOf(topic)[0]).to.include({ topic, from_position: '0', to_position: String(reached), count })
    }
    expectExact('order')
    expectExact('invoice')
  })

  it('is overdue from the end of an hour on, until every topic is sealed', async () => {
    const { database, ledger } = harness
    const overdue = (): Promise<number> => overdueMs({ database, ledger, everyMs: HOUR_MS })
    await harness.world.pass(2 * HOUR_MS)
    expect(await overdue(), 'without facts').to.equal(0)
    await order()
    await project()
    await harness.world.pass(50 * MINUTE_MS - 1)
    expect(await overdue(), 'before the end of the hour').to.equal(0)
    await harness.world.pass(2 * HOUR_MS)
    expect(await overdue()).to.equal(2 * HOUR_MS - 1)
    await start()
    await eventually(async () => (await overdue()) === 0)
  })

  it('seals once an hour, also without facts', async () => {
    await order()
    await project()
    await start()
    for (let hour = 1; hour <= 3; hour += 1) {
      await pass(HOUR_MS)
      await pass(MINUTE_MS)
      await project()
    }
    const orders = sealedOf('ledger.order.v1')
    expect(orders.map(({ count }) => count)).to.deep.equal([1, 0, 0])
    expect(new Set(orders.slice(1).map(({ sha256 }) => sha256))).to.deep.equal(new Set([hashOf([])]))
    expectExact('order')
  })

  it('catches up after downtime with one manifest for all hours', async () => {
    await sealFirstHour()
    await order()
    await order()
    await project()
    await harness.world.pass(5 * HOUR_MS)
    await start()
    await pass(1_000)
    expect(sealedOf('ledger.order.v1').map(({ count }) => count)).to.deep.equal([1, 2])
    expectExact('order')
  })

  it('does not seal again in an hour that was sealed, also after a restart', async () => {
    await sealFirstHour()
    await order()
    await project()
    await start()
    await pass(30 * MINUTE_MS)
    expect(sealedOf('ledger.order.v1')).to.have.length(1)
  })

  it('seals up to the checkpoint of the facts, and the rest an hour later', async () => {
    await order()
    await project()
    await order()
    await start()
    await pass(HOUR_MS)
    await project()
    await pass(HOUR_MS)
    expect(sealedOf('ledger.order.v1').map(({ count }) => count)).to.deep.equal([1, 1])
    expectExact('order')
  })

  it('seals no fact twice when three run at once', async () => {
    for (let n = 0; n < 20; n += 1) await order()
    await project()
    for (let n = 0; n < 3; n += 1) await start()
    await pass(HOUR_MS)
    for (const topic of MANIFEST_TOPICS) expect(sealedOf(topic)).to.have.length(1)
    expectExact('order')
  })

  it('counts again after a concurrent manifest, from the end of that', async () => {
    await order()
    await project()
    const mine = harness.openLedger()
    let isFirst = true
    const reached = async (): Promise<bigint> => {
      if (isFirst) {
        isFirst = false
        await order()
        await project()
        await sealManifest(
          { ledger: harness.ledger, sql: harness.database.sql, projectedUpTo: reached },
          'ledger.order.v1',
          'another',
        )
        await order()
        await project()
        return 1n
      }
      return harness.checkpoint(FACTS)
    }
    const { sealed } = await sealManifest(
      { ledger: mine, sql: harness.database.sql, projectedUpTo: reached },
      'ledger.order.v1',
      'mine',
    )
    expect(sealed?.count).to.equal(1)
    expect(manifestsOf('ledger.order.v1').map(({ metadata }) => metadata['authority'])).to.deep.equal([
      'another',
      'mine',
    ])
    expectExact('order')
  })

  it('does not seal a table that is being rebuilt', async () => {
    await order()
    await project()
    const answers = [1n, 0n]
    const reached = async () => answers.shift() ?? 0n
    const sealing = sealManifest(
      { ledger: harness.ledger, sql: harness.database.sql, projectedUpTo: reached },
      'ledger.order.v1',
      'x',
    )
    expect(await rejectionOf(sealing)).to.include({ name: 'Unavailable', effect: 'none' })
    expect(all()).to.deep.equal([])
  })

  it('acts as the system tenant, whose facts no other tenant can read', async () => {
    await order()
    await project()
    await start()
    await pass(HOUR_MS)
    await project()
    const rows = await harness.database.sql(`select tenant_id, type from facts_v1 where type = 'ledger.manifest'`)
    expect(rows).to.deep.equal(MANIFEST_TOPICS.map(() => ({ tenant_id: 'ledger', type: 'ledger.manifest' })))
  })
})
