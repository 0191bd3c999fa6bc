import { expect } from 'chai'
import { acquireCheckpoint, EpochSuperseded, positionOf } from '../../src/feeds/checkpoints.ts'
import type { Feed } from '../../src/feeds/feedLoop.ts'
import { publisherOf } from '../../src/feeds/publisher.ts'
import { type Database, type FactMessage, type FactProducer, Unavailable } from '../../src/ports.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import type { MemoryLog } from '../support/memoryStore.ts'
import { rejectionOf } from '../support/rejection.ts'
import { beginRun, createRefusingBus, fillLog, useTestPostgres } from './fixtures.ts'

/** The order of the broker's acknowledgement and the checkpoint of the publisher. */

const unavailable = new Unavailable('fact bus', { effect: 'unknown' })

describe('the checkpoint of the publisher', () => {
  const postgres = useTestPostgres()
  let log: MemoryLog
  let database: Database

  before(async () => {
    log = await fillLog(3)
  })
  beforeEach(async () => {
    database = await postgres.ledgerDatabase()
  })

  const publisher = (bus: FactProducer, on = database): Feed =>
    publisherOf({ database: on, bus, store: log.open(), world: realWorld() })
  const head = (): bigint => log.events.at(-1)?.position ?? 0n

  /** Calls `onMove` with the statement that moves the checkpoint, before it is executed. */
  const watched = (onMove: () => void): Database => ({
    ...database,
    sql: async (text, values) => {
      if (text.includes('update checkpoints set position')) onMove()
      return (await database.sql(text, values)) as never
    },
  })

  it('moves after the acknowledgement of every fact before it', async () => {
    const { bus, acknowledged } = createRefusingBus()
    const atMoves: number[] = []
    const run = await beginRun(
      publisher(
        bus,
        watched(() => void atMoves.push(acknowledged.length)),
      ),
    )
    const half = Math.floor(log.events.length / 2)
    const [first, second] = [log.events.slice(0, half), log.events.slice(half)]
    await run.processBatch(first, first.at(-1)?.position ?? 0n)
    const inFirst = acknowledged.length
    await run.processBatch(second, head())
    expect(inFirst).to.be.within(1, acknowledged.length - 1)
    expect(atMoves).to.deep.equal([inFirst, acknowledged.length])
    expect(await positionOf(database.sql, 'publisher')).to.equal(head())
  })

  it('stays where a batch is not acknowledged', async () => {
    let moves = 0
    const refusing: FactProducer = { ...createRefusingBus().bus, publish: () => Promise.reject(unavailable) }
    const run = await beginRun(
      publisher(
        refusing,
        watched(() => void moves++),
      ),
    )
    expect(await rejectionOf(run.processBatch(log.events, head()))).to.equal(unavailable)
    expect(moves).to.equal(0)
    expect(await acquireCheckpoint(database.sql, 'publisher', 2n)).to.equal('start')
  })

  it('that was lost after the acknowledgement makes duplicates with the same bytes, and no gap', async () => {
    const lost = watched(() => {
      throw new Unavailable('database', { effect: 'none' })
    })
    const before = createRefusingBus()
    const interrupted = await beginRun(publisher(before.bus, lost))
    expect(await rejectionOf(interrupted.processBatch(log.events, head()))).to.be.instanceOf(Unavailable)
    const after = createRefusingBus()
    const next = await beginRun(publisher(after.bus), 2n)
    expect(next.after).to.equal('start')
    await next.processBatch(log.events, head())
    const bytesOf = (messages: readonly FactMessage[]): string => JSON.stringify(messages)
    expect(before.acknowledged).to.have.length.above(0)
    expect(bytesOf(after.acknowledged)).to.equal(bytesOf(before.acknowledged))
  })

  it('is moved no more by an epoch that was replaced', async () => {
    const old = await beginRun(publisher(createRefusingBus().bus))
    await beginRun(publisher(createRefusingBus().bus), 2n)
    expect(await rejectionOf(old.processBatch(log.events, head()))).to.be.instanceOf(EpochSuperseded)
    expect(await acquireCheckpoint(database.sql, 'publisher', 2n)).to.equal('start')
  })
})
