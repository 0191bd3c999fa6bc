import { expect } from 'chai'
import { EpochSuperseded } from '../../src/feeds/checkpoints.ts'
import { deadLettersOfKey } from '../../src/feeds/deadLetters.ts'
import { publisherOf } from '../../src/feeds/publisher.ts'
import type { Feed, Run } from '../../src/feeds/feedLoop.ts'
import type { Database, FactProducer, StoredEvent } from '../../src/ports.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import type { MemoryLog } from '../support/memoryStore.ts'
import { beginRun, createRefusingBus, fillLog, useTestPostgres } from './fixtures.ts'

describe('a publisher that takes over', () => {
  const postgres = useTestPostgres()
  let log: MemoryLog
  let database: Database

  before(async () => {
    log = await fillLog(2)
    database = await postgres.ledgerDatabase()
  })

  const publisher = (bus: FactProducer, on = database): Feed =>
    publisherOf({ database: on, bus, store: log.open(), world: { ...realWorld(), sleep: () => Promise.resolve() } })
  const head = (): bigint => log.events.at(-1)?.position ?? 0n
  const behind = ({ after }: Run): readonly StoredEvent[] =>
    log.events.filter(({ position }) => after === 'start' || position > after)

  it('delivers no later fact of a key that its predecessor parks meanwhile', async () => {
    // The invoice has two facts; the predecessor would park the first while its successor begins.
    const paid = log.events.find(({ type }) => type === 'InvoicePaid') ?? expect.fail()
    const key = paid.stream.slice('invoice-'.length)
    const old = await beginRun(publisher(createRefusingBus(key).bus))
    const early = log.events.filter(({ position }) => position < paid.position)
    let outcome: unknown
    let isFirst = true
    const interrupted: Database = {
      ...database,
      sql: async (text, values) => {
        const rows = await database.sql(text, values)
        if (isFirst) {
          isFirst = false
          outcome = await old.processBatch(early, early.at(-1)?.position ?? 0n).catch((error: unknown) => error)
        }
        return rows as never
      },
    }
    const { bus, acknowledged } = createRefusingBus()
    const fresh = await beginRun(publisher(bus, interrupted), 2n)
    await fresh.processBatch(behind(fresh), head())
    const sent = acknowledged.filter(message => message.key === key).map(({ headers }) => headers['ce_type'])
    const parked = await deadLettersOfKey(database.sql, 'publisher', key)
    expect(parked.length === 0 || sent.length === 0, `${parked.length} parked, ${sent.join()} sent`).to.equal(true)
    expect(outcome).to.be.instanceOf(EpochSuperseded)
    expect(sent).to.deep.equal(['invoice.approved', 'invoice.paid'])
  })
})
