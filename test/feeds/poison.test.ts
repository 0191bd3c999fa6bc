import { expect } from 'chai'
import { deadLettersOfKey, deadLetterSummary, requestForDeadLetters } from '../../src/feeds/deadLetters.ts'
import { projectorOf } from '../../src/feeds/projector.ts'
import type { ReadModel } from '../../src/feeds/readModel.ts'
import { readModels } from '../../src/feeds/readModels.ts'
import { runFeeds } from '../../src/feeds/feedLoop.ts'
import { type Database, type JsonObject, Unavailable } from '../../src/ports.ts'
import { positionOf } from '../../src/feeds/checkpoints.ts'
import type { MemoryLog } from '../support/memoryStore.ts'
import { createReports, fillLog, foldedRows, type Reports, rowsIn, TABLES, useTestPostgres } from './fixtures.ts'
import { eventually } from '../support/eventually.ts'
import { hurriedWorld } from '../support/hurriedWorld.ts'

describe('an event that a read model cannot write', () => {
  const postgres = useTestPostgres()
  let log: MemoryLog
  let database: Database
  let leftBehind: string[]
  let reports: Reports
  let stop: AbortController
  let running: Promise<void>

  const start = (models: readonly ReadModel[] = readModels): void => {
    stop = new AbortController()
    reports = createReports()
    const dependencies = { store: log.open(), database, world: hurriedWorld(), report: reports.report }
    const projector = projectorOf(dependencies, models, name => leftBehind.push(name))
    running = runFeeds('poison', [projector], dependencies, stop.signal)
  }
  const caughtUp = async (): Promise<void> => {
    const head = log.events.at(-1)?.position ?? 0n
    await eventually(async () => {
      const reached = await Promise.all(readModels.map(({ name }) => positionOf(database.sql, name)))
      return reached.every(position => position >= head)
    })
  }
  const streamOf = (category: string): string =>
    log.events.find(({ stream }) => stream.startsWith(`${category}-`))?.stream ?? ''
  const append = async (stream: string, type: string, data: JsonObject, changes: JsonObject = {}): Promise<void> => {
    const like = log.events.findLast(event => event.stream === stream)
    const id = `00000000-0000-8000-a000-${String(log.events.length).padStart(12, '0')}`
    await log
      .open()
      .append(stream, [{ id, type, data, metadata: { ...like?.metadata, ...changes } }], like?.revision ?? 'no_stream')
  }
  const dataOf = (stream: string, type: string): JsonObject =>
    log.events.find(event => event.stream === stream && event.type === type)?.data ?? {}
  const keyOf = (stream: string): string => stream.slice(stream.indexOf('-') + 1)
  const deliveries = async (): Promise<string[]> =>
    (await deadLetterSummary(database.sql)).map(({ delivery }) => delivery)

  /** Read models of which one cannot write the row of the stream, until `mend` is called. */
  const buildWithBug = (victim: string) => {
    let isBroken = true
    const models = readModels.map(
      (model): ReadModel => ({
        ...model,
        write: (sql, events) => {
          if (isBroken && model.name === 'payments_v1' && events.some(({ id }) => victim.endsWith(id)))
            throw new TypeError('a bug of this build')
          return model.write(sql, events)
        },
      }),
    )
    return {
      models,
      mend: () => {
        isBroken = false
      },
    }
  }

  beforeEach(async () => {
    log = await fillLog(6)
    database = await postgres.ledgerDatabase()
    leftBehind = []
  })
  afterEach(async () => {
    stop.abort()
    await running
  })

  const poisons: Readonly<Record<string, readonly [type: string, data: JsonObject, schemaVersion: number]>> = {
    'an unknown type': ['InvoiceVanished', {}, 1],
    'a newer version': ['InvoiceVoided', { reason: null }, 2],
    'invalid data': ['InvoiceVoided', { reason: 7 }, 1],
  }
  for (const [name, [type, data, schemaVersion]] of Object.entries(poisons))
    it(`with ${name} is parked with its stream in every model of its category; all rows are as before it`, async () => {
      const whole = await foldedRows(log)
      const victim = streamOf('invoice')
      await append(victim, type, data, { schemaVersion })
      start()
      await caughtUp()
      expect(await deliveries()).to.deep.equal(['audit_v2', 'facts_v1', 'invoices_v1', 'journal_entries_v1'])
      for (const table of TABLES) expect(await rowsIn(database, table)).to.deep.equal(whole[table])
      const [parked] = await deadLettersOfKey(database.sql, 'invoices_v1', keyOf(victim))
      expect([parked?.type, parked?.attempts]).to.deep.equal([type, 1])
      expect(leftBehind).to.deep.equal([])
    })

  it('delays the later events of its stream, and no others', async () => {
    const victim = streamOf('order')
    start()
    await caughtUp()
    const before = await rowsIn(database, 'orders_v1')
    await append(victim, 'OrderVanished', {})
    await append(victim, 'OrderCompleted', { invoice_id: 'inv_00000000000000000000000001' })
    await caughtUp()
    expect(await rowsIn(database, 'orders_v1')).to.deep.equal(before)
    const parked = await deadLettersOfKey(database.sql, 'orders_v1', keyOf(victim))
    expect(parked.map(({ type, attempts }) => [type, attempts])).to.deep.equal([
      ['OrderVanished', 1],
      ['OrderCompleted', 0],
    ])
  })

  it('with a text that Postgres cannot store is parked by the model that would store it', async () => {
    const victim = streamOf('order')
    const created = dataOf(victim, 'OrderCreated')
    const stream = `order-ord_${'9'.repeat(26)}`
    const metadata = log.events[0]?.metadata ?? {}
    const poison = { id: '00000000-0000-8000-a000-00000000dead', type: 'OrderCreated', metadata }
    await log.open().append(stream, [{ ...poison, data: { ...created, description: 'a\u0000b' } }], 'no_stream')
    start()
    await caughtUp()
    expect(await deliveries()).to.deep.equal(['orders_v1'])
    expect(leftBehind).to.deep.equal([])
  })

  it('is written by a replay after the repair, with the later events of its stream, in order', async () => {
    const victim = streamOf('payment')
    const build = buildWithBug(victim)
    start(build.models)
    await caughtUp()
    const key = keyOf(victim)
    expect((await deadLettersOfKey(database.sql, 'payments_v1', key)).length).to.be.greaterThan(1)
    await requestForDeadLetters(database.sql, { delivery: 'payments_v1', key }, 'replay')
    await eventually(async () => (await deadLettersOfKey(database.sql, 'payments_v1', key))[0]?.attempts === 2)
    build.mend()
    await requestForDeadLetters(database.sql, { delivery: 'payments_v1', key }, 'replay')
    await eventually(async () => (await deadLettersOfKey(database.sql, 'payments_v1', key)).length === 0)
    const folded = await foldedRows(log)
    expect(await rowsIn(database, 'payments_v1')).to.deep.equal(folded.payments_v1)
  })

  it('is replayed when a process starts, because a newer build may decode it', async () => {
    const victim = streamOf('payment')
    const build = buildWithBug(victim)
    start(build.models)
    await caughtUp()
    stop.abort()
    await running
    build.mend()
    start(build.models)
    await eventually(async () => (await deadLettersOfKey(database.sql, 'payments_v1', keyOf(victim))).length === 0)
    const folded = await foldedRows(log)
    expect(await rowsIn(database, 'payments_v1')).to.deep.equal(folded.payments_v1)
  })

  it('delays neither other replays nor later events while its own replay is not answered', async () => {
    const payments = new Set(log.events.map(({ stream }) => stream).filter(stream => stream.startsWith('payment-')))
    const [slowKey = expect.fail(), otherKey = expect.fail()] = [...payments].map(keyOf)
    let replays = 0
    let isReplaying = false
    let isAnswered = false
    const models = readModels.map(
      (model): ReadModel => ({
        ...model,
        write: async (sql, events) => {
          const isSlow = events.some(({ id }) => id === slowKey)
          const isAlone = events.length === 1
          if (model.name !== 'payments_v1' || !events.some(({ id }) => id === slowKey || id === otherKey))
            return model.write(sql, events)
          if (!isReplaying) throw new TypeError('a bug of this build')
          if (isSlow && isAlone && !isAnswered) {
            replays += 1
            throw new Unavailable('database', { effect: 'none', cause: new Error('canceling statement') })
          }
          return model.write(sql, events)
        },
      }),
    )
    start(models)
    await caughtUp()
    isReplaying = true
    for (const key of [slowKey, otherKey])
      await requestForDeadLetters(database.sql, { delivery: 'payments_v1', key }, 'replay')
    await eventually(async () => (await deadLettersOfKey(database.sql, 'payments_v1', otherKey)).length === 0)
    await append(streamOf('order'), 'OrderCompleted', { invoice_id: 'inv_00000000000000000000000001' })
    await caughtUp()
    await eventually(() => replays > 2)
    expect((await deadLettersOfKey(database.sql, 'payments_v1', slowKey))[0]).to.include({
      requested: 'replay',
      attempts: 1,
    })
    isAnswered = true
    await eventually(async () => (await deadLettersOfKey(database.sql, 'payments_v1', slowKey)).length === 0)
    expect(await rowsIn(database, 'payments_v1')).to.deep.equal((await foldedRows(log)).payments_v1)
    expect(reports.states.flatMap(({ error }) => (error === undefined ? [] : [error]))).to.deep.equal([])
  })

  describe('when an operator discards it,', () => {
    const discard = async (key: string, position?: bigint): Promise<void> => {
      await requestForDeadLetters(database.sql, { delivery: 'orders_v1', key }, 'discard', position)
    }
    const parkedTypes = async (key: string) =>
      (await deadLettersOfKey(database.sql, 'orders_v1', key)).map(({ type }) => type)
    const stateOf = async (key: string) => (await rowsIn(database, 'orders_v1')).find(({ id }) => id === key)?.['state']
    const complete = (stream: string) => append(stream, 'OrderCompleted', { invoice_id: `inv_${'0'.repeat(25)}1` })
    /** A stream whose first event cannot be decoded. */
    const beginUndecodable = async (): Promise<string> => {
      const stream = `order-ord_${'9'.repeat(26)}`
      const { metadata = {} } = log.events[0] ?? {}
      const event = { id: '00000000-0000-8000-a000-00000000dead', type: 'OrderBegun', data: {}, metadata }
      await log.open().append(stream, [event], 'no_stream')
      return stream
    }

    it('the row continues with the next event of its stream', async () => {
      const victim = streamOf('order')
      await append(victim, 'OrderVanished', {})
      start()
      await caughtUp()
      await discard(keyOf(victim))
      await eventually(async () => (await parkedTypes(keyOf(victim))).length === 0)
      await complete(victim)
      await eventually(async () => (await stateOf(keyOf(victim))) === 'completed')
      expect(leftBehind).to.deep.equal([])
    })

    it('the later events of its stream can be replayed', async () => {
      const victim = streamOf('order')
      const key = keyOf(victim)
      await append(victim, 'OrderVanished', {})
      await complete(victim)
      start()
      await caughtUp()
      await discard(key, (await deadLettersOfKey(database.sql, 'orders_v1', key))[0]?.position)
      await eventually(async () => (await parkedTypes(key)).length === 1)
      await requestForDeadLetters(database.sql, { delivery: 'orders_v1', key }, 'replay')
      await eventually(async () => (await parkedTypes(key)).length === 0)
      expect(await stateOf(key)).to.equal('completed')
    })

    it('and the stream began with it, the later events of that stream wait and all others continue, also after a restart', async () => {
      const stream = await beginUndecodable()
      const key = keyOf(stream)
      start()
      await caughtUp()
      await discard(key)
      await eventually(async () => (await parkedTypes(key)).length === 0)
      await complete(stream)
      await complete(streamOf('order'))
      await caughtUp()
      expect(await parkedTypes(key)).to.deep.equal(['OrderCompleted'])
      stop.abort()
      await running
      await database.sql(`delete from parked_facts where delivery = 'orders_v1'`)
      await complete(stream)
      start()
      await caughtUp()
      expect(await parkedTypes(key)).to.deep.equal(['OrderCompleted'])
      expect(await stateOf(keyOf(streamOf('order')))).to.equal('completed')
      expect(leftBehind).to.deep.equal([])
    })

    it('and the process ends first, the next process discards it', async () => {
      const victim = streamOf('order')
      const key = keyOf(victim)
      await append(victim, 'OrderVanished', {})
      start()
      await caughtUp()
      stop.abort()
      await running
      await discard(key)
      start()
      await eventually(async () => (await parkedTypes(key)).length === 0)
    })
  })

  it('is not parked when the table is missing, and the model is left behind', async () => {
    await database.sql('drop table invoices_v1')
    start()
    await eventually(() => leftBehind.includes('invoices_v1'))
    expect(await deliveries()).to.deep.equal([])
  })
})
