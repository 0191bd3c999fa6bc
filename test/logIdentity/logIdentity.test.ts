import { expect } from 'chai'
import { AnotherLog, adoptLog, checkLog } from '../../src/logIdentity/logIdentity.ts'
import { createLedger } from '../../src/commands/commandHandler.ts'
import { projectorOf } from '../../src/feeds/projector.ts'
import { readModels } from '../../src/feeds/readModels.ts'
import type { Database, EventStore, World } from '../../src/ports.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import { feedAll, fillLog, useTestPostgres } from '../feeds/fixtures.ts'
import { createMemoryLog, type MemoryLog } from '../support/memoryStore.ts'
import { rejectionOf } from '../support/rejection.ts'

/** Nodes that lack the newest events, or all of them. */
const BEHIND: Readonly<Record<string, (log: MemoryLog) => EventStore>> = {
  'an earlier head': log => ({ ...log.open(), head: async () => log.events[3]?.position ?? 0n }),
  'no log': () => createMemoryLog().open(),
  'the newest head and no facts': log => ({
    ...log.open(),
    async *readStream(stream, options) {
      if (stream.startsWith('secret-')) yield* log.open().readStream(stream, options)
    },
  }),
}

describe('the identity of a log', () => {
  const postgres = useTestPostgres()
  let database: Database
  let log: MemoryLog

  const world: World = { ...realWorld(), sleep: async () => undefined }
  const adopt = (of: MemoryLog) => adoptLog(createLedger(of.open(), world), database)
  const check = (store: EventStore) => checkLog({ database, store, world })

  before(async () => {
    log = createMemoryLog()
    const ledger = createLedger(log.open(), realWorld())
    await ledger.idSecret()
    for (const { stream, revision, id, type, data, metadata } of (await fillLog(6)).events)
      await ledger.store.append(stream, [{ id, type, data, metadata }], revision === 0n ? 'no_stream' : revision - 1n)
  })
  beforeEach(async () => {
    database = await postgres.ledgerDatabase()
    await adopt(log)
    await feedAll(
      projectorOf({ database, store: log.open(), world: realWorld() }, readModels, () => undefined),
      log,
    )
  })

  it('is stored in tables that belong to no log yet, and recognized afterwards', async () => {
    await check(log.open())
    await adopt(log)
    await check(log.open())
  })

  it('differs from that of a new log', async () => {
    const other = createMemoryLog()
    expect(await rejectionOf(check(other.open()))).to.be.instanceOf(AnotherLog)
    expect(await rejectionOf(adopt(other))).to.be.instanceOf(AnotherLog)
    expect(other.events).to.deep.equal([])
  })

  for (const [answers, behind] of Object.entries(BEHIND))
    it(`is recognized on a node that lags, and at first answers with ${answers}`, async () => {
      const lagging = behind(log)
      let calls = 0
      const store: EventStore = {
        ...lagging,
        head: () => (calls++ < 3 ? lagging : log.open()).head(),
        readStream: (...of) => (calls++ < 3 ? lagging : log.open()).readStream(...of),
      }
      await check(store)
      expect(calls).to.be.greaterThan(3)
    })

  it('is missed where the stream of the secret was deleted, and nobody is told to empty the tables', async () => {
    const store: EventStore = {
      ...log.open(),
      async *readStream(stream, options) {
        if (!stream.startsWith('secret-')) yield* log.open().readStream(stream, options)
      },
    }
    const { name, message } = await rejectionOf(check(store))
    expect(name).to.equal('IdSecretLost')
    expect(message)
      .to.match(/secret-sec_\w+.* pay twice/)
      .and.not.include('reset')
  })

  it('is not sufficient where the log ends before the newest row, because it was restored from an older backup', async () => {
    const store = { ...log.open(), head: async () => log.events[3]?.position ?? 0n }
    const failure = await rejectionOf(check(store))
    expect(failure).to.be.instanceOf(AnotherLog)
    expect(failure.message).to.match(/later state of the log .*the log ends at/)
  })

  it('is not sufficient where the newest fact is not in the log, because it was restored and has grown again', async () => {
    const store: EventStore = {
      ...log.open(),
      head: async () => log.head() + 1_000n,
      readStream: async function* (stream, options) {
        for await (const event of log.open().readStream(stream, options))
          yield stream.startsWith('secret-') ? event : { ...event, id: '00000000-0000-8000-a000-00000000dead' }
      },
    }
    const failure = await rejectionOf(check(store))
    expect(failure.message).to.match(/newest fact, .* is not in it/)
  })

  it('is not sufficient where the log was restored under a running service and has grown beyond its former end', async () => {
    const seen = await checkLog({ database, store: log.open(), world })
    // The restored log has the event of the newest row, but not the fact that was compared before.
    const restored: EventStore = {
      ...log.open(),
      readStream: async function* (stream, options) {
        for await (const event of log.open().readStream(stream, options)) if (event.id !== seen?.id) yield event
      },
    }
    await database.sql('delete from facts_v1 where position = (select max(position) from facts_v1)')
    await check(restored)
    expect(await rejectionOf(checkLog({ database, store: restored, world }, seen))).to.be.instanceOf(AnotherLog)
  })
})
