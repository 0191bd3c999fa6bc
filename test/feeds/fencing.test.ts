import { expect } from 'chai'
import { projections } from '../../projections/index.ts'
import { EpochSuperseded } from '../../src/feeds/checkpoints.ts'
import { decode } from '../../src/feeds/decode.ts'
import { deadLetterSummary } from '../../src/feeds/deadLetters.ts'
import { projectorOf } from '../../src/feeds/projector.ts'
import { readModels, rowsOf } from '../../src/feeds/readModels.ts'
import type { Feed } from '../../src/feeds/feedLoop.ts'
import type { Database, Sql } from '../../src/ports.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import type { MemoryLog } from '../support/memoryStore.ts'
import { rejectionOf } from '../support/rejection.ts'
import { beginRun, feedAll, fillLog, rowsIn, useTestPostgres } from './fixtures.ts'

describe('a projector that was replaced while it was paused', () => {
  const postgres = useTestPostgres()
  let log: MemoryLog
  let database: Database

  beforeEach(async () => {
    log = await fillLog(3)
    database = await postgres.ledgerDatabase()
  })

  const head = (): bigint => log.events.at(-1)?.position ?? 0n
  const projector = (on: Database): Feed =>
    projectorOf({ database: on, store: log.open(), world: realWorld() }, readModels, () => undefined)
  const poison = async (): Promise<string> => {
    const last = log.events.findLast(({ stream }) => stream.startsWith('invoice-')) ?? expect.fail()
    const event = { id: '00000000-0000-8000-a000-00000000dead', type: 'InvoiceVanished', data: {} }
    await log.open().append(last.stream, [{ ...event, metadata: last.metadata }], last.revision)
    return last.stream.slice('invoice-'.length)
  }

  /** The database of a process that is paused after a number of failed transactions, while `meanwhile` runs. */
  const pausedAfter = (failures: number, meanwhile: () => Promise<unknown>): Database => {
    let left = failures
    return {
      ...database,
      transaction: async work => {
        if (left === 0) {
          left = -1
          await meanwhile()
        }
        try {
          return await database.transaction(work)
        } catch (error) {
          left -= 1
          throw error
        }
      },
    }
  }

  it('writes nothing more of a batch with an undecodable event', async () => {
    await poison()
    // The first failed transaction writes all read models, the second the invoices alone.
    const old = projector(pausedAfter(2, () => beginRun(projector(database), 2n)))
    const run = await beginRun(old)
    expect(await rejectionOf(run.processBatch(log.events, head()))).to.be.instanceOf(EpochSuperseded)
    for (const { name: table } of readModels.filter(({ name }) => !/^(orders|payments)_/.test(name)))
      expect(await database.sql(`select 1 from ${table}`), table).to.deep.equal([])
    expect(await deadLetterSummary(database.sql)).to.deep.equal([])
  })

  it('does not overwrite a newer row of its successor', async () => {
    const invoices = rowsOf(projections.invoices as never)
    const events = log.events.filter(({ stream }) => stream.startsWith('invoice-')).map(event => decode(event).recorded)
    const [first] = events
    let isWritten = false
    const slow: Sql = async (text, values) => {
      if (text.startsWith('insert') && !isWritten) {
        isWritten = true
        await invoices.write(database.sql, events)
      }
      return database.sql(text, values)
    }
    await invoices.write(slow, first ? [first] : [])
    const written = await rowsIn(database, 'invoices_v1')
    await database.sql('truncate invoices_v1')
    await invoices.write(database.sql, events)
    expect(written).to.deep.equal(await rowsIn(database, 'invoices_v1'))
  })

  it('leaves the request for a replay to its successor', async () => {
    const key = await poison()
    await feedAll(projector(database), log)
    const requested = (): Promise<unknown> =>
      database.sql('select requested, attempts from parked_facts where key = $1 order by delivery', [key])
    // A run requests the replay of all dead letters when it begins.
    const old = projector(pausedAfter(1, () => beginRun(projector(database), 3n)))
    const run = await beginRun(old, 2n)
    const before = await requested()
    expect(await rejectionOf(run.background?.() ?? expect.fail())).to.be.instanceOf(EpochSuperseded)
    expect(await requested()).to.deep.equal(before)
  })
})
