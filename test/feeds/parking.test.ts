import { expect } from 'chai'
import { publishedBy } from '../../projections/facts/projection.ts'
import { positionOf } from '../../src/feeds/checkpoints.ts'
import { decode } from '../../src/feeds/decode.ts'
import {
  deleteDeadLettersOf,
  insertDeadLetters,
  type DeadLetter,
  deadLettersOfKey,
  deadLetterSummary,
  requestedKeys,
  requestForDeadLetters,
  requestReplayOfAll,
} from '../../src/feeds/deadLetters.ts'
import { removeDelivery } from '../../src/feeds/subscriptionCheckpoints.ts'
import { openParking } from '../../src/feeds/parking.ts'
import { createSerialQueue } from '../../src/lib/serialQueue.ts'
import { createTimer } from '../../src/feeds/timer.ts'
import { openDeliveryWithParking, type Outgoing } from '../../src/feeds/deliveryWithParking.ts'
import { publisherOf } from '../../src/feeds/publisher.ts'
import { runFeeds } from '../../src/feeds/feedLoop.ts'
import {
  type Database,
  type FactMessage,
  type FactProducer,
  FactTooLarge,
  type Sql,
  type StoredEvent,
  Unavailable,
} from '../../src/ports.ts'
import { RANGE_MAX } from '../../src/feeds/positionRanges.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import type { MemoryLog } from '../support/memoryStore.ts'
import { createVirtualWorld } from '../support/virtualWorld.ts'
import {
  createRefusingBus,
  createReports,
  fillLog,
  limitChangedRows,
  type RefusingBus,
  type Reports,
  useTestPostgres,
} from './fixtures.ts'
import { eventually } from '../support/eventually.ts'
import { rejectionOf } from '../support/rejection.ts'

const outgoing = (n: number, key: string): Outgoing => ({
  position: BigInt(n),
  key,
  stream: `invoice-${key}`,
  revision: BigInt(n),
  event_id: `event-${n}`,
  type: 'InvoiceApproved',
  tenant_id: 'acme',
  message: () => ({ topic: 't', key, headers: {}, value: String(n) }),
})

const idOf = ({ headers }: FactMessage): string => headers['ce_id'] ?? ''

describe('the dead letters of a delivery', () => {
  const postgres = useTestPostgres()

  it('are requested and removed in batches, since a statement over all of them could take too long', async () => {
    const { sql } = await postgres.ledgerDatabase()
    const count = 12_001
    await sql(
      `insert into parked_facts (delivery, position, key, stream, revision, event_id, type, tenant_id, reason, attempts,
          first_failed_at)
        select 'publisher', n, n % 7, 's', n, n, 'InvoiceApproved', 'acme', 'r', 1, now() from generate_series(1, ${count}) n`,
    )
    /** The most rows that one statement of the work changes. */
    const largest = async (work: (counting: Sql) => Promise<void>): Promise<number> => {
      let most = 0
      await work(async (text, values) => {
        const before = await untouched()
        const rows = await sql(text, values)
        most = Math.max(most, before - (await untouched()))
        return rows as never
      })
      return most
    }
    const untouched = async (): Promise<number> =>
      (await sql('select from parked_facts where requested is null')).length
    expect(await largest(counting => requestReplayOfAll(counting, 'publisher'))).to.be.within(1, RANGE_MAX)
    expect(await untouched()).to.equal(0)
    await sql('update parked_facts set requested = null')
    expect(await largest(counting => removeDelivery(counting, 'publisher'))).to.be.within(1, RANGE_MAX)
    expect(await sql('select from parked_facts')).to.have.length(0)
  })
})

describe('parking by the publisher', () => {
  const postgres = useTestPostgres()
  let log: MemoryLog
  let database: Database
  let reports: Reports
  let stop: AbortController
  let running: Promise<void>

  const start = ({ bus }: RefusingBus): void => {
    stop = new AbortController()
    reports = createReports()
    const dependencies = { store: log.open(), database, world: realWorld(), report: reports.report }
    const publisher = publisherOf({ ...dependencies, bus })
    running = runFeeds('parking', [publisher], dependencies, stop.signal)
  }
  const end = async (): Promise<void> => {
    stop.abort()
    await running
  }
  /** Resolves when the publisher has reached the end of the log. */
  const caughtUp = async (): Promise<void> => {
    const head = log.events.at(-1)?.position ?? 0n
    await eventually(async () => (await positionOf(database.sql, 'publisher')) >= head)
  }
  const idsOf = (events: readonly StoredEvent[]): string[] =>
    events.flatMap(stored => {
      const { category, recorded } = decode(stored)
      const fact = publishedBy(category, recorded)
      return fact ? [fact.id] : []
    })
  const isOf = (key: string) => (stored: StoredEvent) => stored.stream.endsWith(key)
  const sentOf = (key: string, { acknowledged }: RefusingBus): string[] =>
    acknowledged.filter(message => message.key === key).map(idOf)
  const keyOfSome = (category: string): string => {
    const facts = log.events.filter(stored => stored.stream.startsWith(`${category}-`) && idsOf([stored]).length > 0)
    const counts = Map.groupBy(facts, ({ stream }) => stream)
    const [stream] = [...counts].find(([, events]) => events.length > 1) ?? []
    if (stream === undefined) throw new Error(`No ${category} has two facts.`)
    return stream.slice(stream.indexOf('-') + 1)
  }

  before(async () => {
    log = await fillLog(12)
  })
  beforeEach(async () => {
    stop = new AbortController()
    running = Promise.resolve()
    database = await postgres.ledgerDatabase()
  })
  afterEach(end)

  it('retains a fact that cannot be delivered and the later facts of its key; all others are delivered in order', async () => {
    const bus = createRefusingBus()
    const key = keyOfSome('invoice')
    bus.tooLarge.add(key)
    start(bus)
    await caughtUp()
    expect(bus.acknowledged.map(idOf)).to.deep.equal(idsOf(log.events.filter(stored => !isOf(key)(stored))))
    const parked = await deadLettersOfKey(database.sql, 'publisher', key)
    expect(parked.map(({ event_id }) => event_id)).to.deep.equal(idsOf(log.events.filter(isOf(key))))
    expect(parked.map(({ attempts }) => attempts)).to.deep.equal([10, ...parked.slice(1).map(() => 0)])
    expect(parked[0]?.reason).to.match(/^FactTooLarge: .* is larger than topic/)
    // The first attempt is that of the batch; ten more are for the fact alone.
    expect(bus.attempts()).to.equal(11)
  })

  it('retains a later fact of the key also after the broker would accept it', async () => {
    const { bus, acknowledged, tooLarge } = createRefusingBus()
    const dependencies = { database, bus, find: () => Promise.resolve(undefined), fence: () => Promise.resolve() }
    const delivery = await openDeliveryWithParking('later', { ...dependencies, world: createVirtualWorld() })
    const commit = () => Promise.resolve()
    tooLarge.add('k1')
    await delivery.send([outgoing(1, 'k1'), outgoing(2, 'k2')], commit)
    tooLarge.delete('k1')
    await delivery.send([outgoing(3, 'k1'), outgoing(4, 'k2')], commit)
    expect(acknowledged.map(({ value }) => value)).to.deep.equal(['2', '4'])
    const parked = await deadLettersOfKey(database.sql, 'later', 'k1')
    expect(parked.map(({ position, attempts }) => [position, attempts])).to.deep.equal([
      [1n, 10],
      [3n, 0],
    ])
  })

  it('ends a replay at the fact that fails again, and delivers no later one of its key', async () => {
    const acknowledged: string[] = []
    const bus: FactProducer = {
      ...createRefusingBus().bus,
      publish: async messages => {
        const refused = messages.find(({ value }) => value === '1')
        if (refused) throw new FactTooLarge(refused)
        acknowledged.push(...messages.map(({ value }) => value))
      },
    }
    const find = ({ position, key }: DeadLetter) => Promise.resolve(outgoing(Number(position), key))
    const dependencies = { database, bus, find, fence: () => Promise.resolve(), world: realWorld() }
    const delivery = await openDeliveryWithParking('later', dependencies)
    await delivery.send([outgoing(1, 'k1'), outgoing(2, 'k1')], () => Promise.resolve())
    await requestForDeadLetters(database.sql, { delivery: 'later', key: 'k1' }, 'replay')
    running = delivery.serve(stop.signal)
    await eventually(async () => (await deadLettersOfKey(database.sql, 'later', 'k1'))[0]?.attempts === 20)
    await end()
    await delivery.send([outgoing(3, 'k1')], () => Promise.resolve())
    expect(acknowledged).to.deep.equal([])
    expect((await deadLettersOfKey(database.sql, 'later', 'k1')).map(({ position }) => position)).to.deep.equal([
      1n,
      2n,
      3n,
    ])
  })

  it('reports the fact that failed, the time, and the number of facts that wait', async () => {
    const bus = createRefusingBus()
    const key = keyOfSome('invoice')
    bus.tooLarge.add(key)
    const before = Date.now()
    start(bus)
    await caughtUp()
    const [summary, ...others] = await deadLetterSummary(database.sql)
    expect(others).to.deep.equal([])
    const count = BigInt(idsOf(log.events.filter(isOf(key))).length)
    expect(summary).to.deep.include({ delivery: 'publisher', key, waiting: count, attempts: 10, requested: null })
    expect(Date.parse(summary?.first_failed_at ?? '')).to.be.within(before, Date.now())
  })

  it('continues after a restart, with the later facts of the key', async () => {
    const first = createRefusingBus()
    const key = keyOfSome('invoice')
    first.tooLarge.add(key)
    start(first)
    await caughtUp()
    await end()
    await database.sql(`update checkpoints set position = -1 where name = 'publisher'`)
    const second = createRefusingBus()
    start(second)
    await caughtUp()
    expect(sentOf(key, second)).to.deep.equal([])
    expect(second.attempts()).to.equal(0)
  })

  it('ends with a replay, which delivers the facts of the key in order', async () => {
    const bus = createRefusingBus()
    const key = keyOfSome('invoice')
    bus.tooLarge.add(key)
    start(bus)
    await caughtUp()
    bus.tooLarge.delete(key)
    await requestForDeadLetters(database.sql, { delivery: 'publisher', key }, 'replay')
    await eventually(async () => (await deadLetterSummary(database.sql)).length === 0)
    expect(sentOf(key, bus)).to.deep.equal(idsOf(log.events.filter(isOf(key))))
  })

  it('continues when the replay fails, and delivers no later fact of the key', async () => {
    const bus = createRefusingBus()
    const key = keyOfSome('invoice')
    bus.tooLarge.add(key)
    start(bus)
    await caughtUp()
    await requestForDeadLetters(database.sql, { delivery: 'publisher', key }, 'replay')
    await eventually(async () => (await deadLettersOfKey(database.sql, 'publisher', key))[0]?.attempts === 20)
    const parked = await deadLettersOfKey(database.sql, 'publisher', key)
    expect(parked.map(({ requested }) => requested)).to.deep.equal(parked.map(() => null))
    expect(sentOf(key, bus)).to.deep.equal([])
  })

  it('keeps a request to discard a fact that comes while its replay fails', async () => {
    const fact: DeadLetter = {
      ...outgoing(1, 'a'),
      delivery: 'test',
      reason: 'It is unknown.',
      attempts: 1,
      first_failed_at: '2026-11-22T08:00:00.000Z',
    }
    await insertDeadLetters(database.sql, [fact])
    await requestForDeadLetters(database.sql, fact, 'replay')
    const parking = await openParking({
      name: 'test',
      database,
      world: realWorld(),
      queue: createSerialQueue(),
      timer: createTimer(realWorld()),
      fence: () => Promise.resolve(),
      replay: async () => {
        await requestForDeadLetters(database.sql, fact, 'discard', fact.position)
        return { ok: false, reason: 'It is still unknown.', attempts: 1 }
      },
    })
    await parking.serveRequests()
    const [row] = await deadLetterSummary(database.sql)
    expect(row).to.include({ requested: 'discard', reason: 'It is still unknown.', attempts: 2 })
    await parking.serveRequests()
    expect(await deadLetterSummary(database.sql)).to.deep.equal([])
  })

  it('replays keys in the order of their first events, since an invoice may need the event of its order', async () => {
    const keys = ['ord_2', 'inv_1', 'ord_1'] as const
    for (const [index, key] of keys.entries()) {
      const failure = { reason: 'It is unknown.', attempts: 1, first_failed_at: '2026-11-22T08:00:00.000Z' }
      for (const n of [index, index + keys.length]) {
        const { message: _, ...reference } = outgoing(n, key)
        await insertDeadLetters(database.sql, [{ ...reference, ...failure, delivery: 'in-order' }])
      }
      await requestForDeadLetters(database.sql, { delivery: 'in-order', key }, 'replay')
    }
    const replayed: string[] = []
    const parking = await openParking({
      name: 'in-order',
      database,
      world: realWorld(),
      queue: createSerialQueue(),
      timer: createTimer(realWorld()),
      fence: () => Promise.resolve(),
      replay: async ({ key }) => {
        replayed.push(key)
        return { ok: true }
      },
    })
    await parking.serveRequests()
    expect(replayed).to.deep.equal(keys.flatMap(key => [key, key]))
    expect(parking.isEmpty()).to.equal(true)
  })

  /** A parking with one event, whose replays are counted and fail with `cause`. */
  const openFailing = async (cause: Unavailable) => {
    const { message: _, ...reference } = outgoing(1, 'a')
    const failure = { reason: 'It is unknown.', attempts: 1, first_failed_at: '2026-11-22T08:00:00.000Z' }
    await insertDeadLetters(database.sql, [{ ...reference, ...failure, delivery: 'failing' }])
    const world = createVirtualWorld()
    let replays = 0
    const parking = await openParking({
      ...{ name: 'failing', database, world, queue: createSerialQueue(), timer: createTimer(world) },
      replaysAtStart: true,
      fence: () => Promise.resolve(),
      replay: async () => {
        replays += 1
        throw cause
      },
    })
    return { parking, world, replays: () => replays }
  }

  it('tries a replay that is not answered again after pauses that grow up to a minute', async () => {
    const { parking, world, replays } = await openFailing(new Unavailable('database', { effect: 'none' }))
    const afterSeconds: number[] = []
    for (let second = 0; second <= 240; second += 1) {
      const before = replays()
      await parking.serveRequests()
      if (replays() > before) afterSeconds.push(second)
      world.pass(1_000)
    }
    expect(afterSeconds).to.deep.equal([0, 1, 3, 7, 15, 31, 63, 123, 183])
  })

  it('leaves a replay of which it is not known whether it was stored to the next run', async () => {
    const { parking } = await openFailing(new Unavailable('database', { effect: 'unknown' }))
    expect(await rejectionOf(parking.serveRequests())).to.be.instanceOf(Unavailable)
  })

  it('requests the replay of many events, and deletes them, in statements on few', async () => {
    await database.sql(
      `insert into parked_facts (delivery, position, key, stream, revision, event_id, type, tenant_id, reason, attempts, first_failed_at)
        select 'many', n, n, n, 0, n, 'InvoiceApproved', 'acme', 'It is unknown.', 1, now() from generate_series(1, 30000) n`,
    )
    await limitChangedRows(database, 'parked_facts', 20_000)
    await requestReplayOfAll(database.sql, 'many')
    expect(await requestedKeys(database.sql, 'many')).to.have.length(30_000)
    await deleteDeadLettersOf(database.sql, 'many')
    expect(await deadLetterSummary(database.sql)).to.deep.equal([])
  })

  it('discards a fact on request, and that one alone', async () => {
    const bus = createRefusingBus()
    const key = keyOfSome('invoice')
    bus.tooLarge.add(key)
    start(bus)
    await caughtUp()
    const [head, ...behind] = await deadLettersOfKey(database.sql, 'publisher', key)
    await requestForDeadLetters(database.sql, { delivery: 'publisher', key }, 'discard', head?.position)
    await eventually(async () => (await deadLettersOfKey(database.sql, 'publisher', key)).length === behind.length)
    expect(sentOf(key, bus)).to.deep.equal([])
  })

  describe('of events that cannot be decoded', () => {
    const poisons: readonly (readonly [name: string, type: string, data: object])[] = [
      ['an unknown type', 'InvoiceVanished', {}],
      ['invalid data', 'InvoicePaid', { amount_due: 'plenty' }],
    ]
    for (const [name, type, data] of poisons)
      it(`retains one with ${name}, with its key; all other facts are delivered`, async () => {
        const own = await fillLog(6)
        const before = log
        log = own
        try {
          const store = own.open()
          const victim = own.events.find(({ stream }) => stream.startsWith('invoice-'))?.stream ?? ''
          const revision = BigInt(own.events.filter(({ stream }) => stream === victim).length - 1)
          const metadata = own.events[0]?.metadata ?? {}
          const poison = { id: '00000000-0000-8000-a000-00000000dead', type, data: data as never, metadata }
          await store.append(victim, [poison], revision)
          const bus = createRefusingBus()
          start(bus)
          await caughtUp()
          const key = victim.slice(victim.indexOf('-') + 1)
          expect((await deadLetterSummary(database.sql)).map(parked => [parked.key, parked.type])).to.deep.equal([
            [key, type],
          ])
          expect(bus.acknowledged.map(idOf)).to.deep.equal(idsOf(own.events.slice(0, -1)))
        } finally {
          log = before
        }
      })
  })
})
