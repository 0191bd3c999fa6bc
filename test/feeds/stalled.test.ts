import { expect } from 'chai'
import { type Feed, runFeeds } from '../../src/feeds/feedLoop.ts'
import type { Database } from '../../src/ports.ts'
import { createHeldWorld, type HeldWorld } from '../processes/harness.ts'
import { createReports, type Reports } from './fixtures.ts'
import { createSource, databaseThatGrants, type Waiting, type Work } from './itemSource.ts'

const STALLED_AFTER_MS = 30_000

/** A database that grants no lease; the test provides the outcome of each attempt. */
const databaseThatRefuses = () => {
  let attempted: Waiting = () => undefined
  const database = {
    withLease: (_: string, stop: AbortSignal, __: Work, waiting?: Waiting) => {
      attempted = waiting ?? attempted
      return new Promise<void>(resolve => stop.addEventListener('abort', () => resolve()))
    },
  } as Database
  return { database, attempted: (error?: unknown) => attempted(error) }
}

describe('a feed that makes no progress', () => {
  let world: HeldWorld
  let reports: Reports
  let source: ReturnType<typeof createSource>
  let stop: AbortController
  let running: Promise<void>

  const start = (processBatch: () => Promise<void> = async () => {}, database = databaseThatGrants()): void => {
    const feed: Feed = {
      name: 'tried',
      categories: ['order'],
      beginRun: async () => ({ after: 'start', processBatch }),
    }
    stop = new AbortController()
    running = runFeeds('tests', [feed], { store: source.store, database, world, report: reports.report }, stop.signal)
  }
  const newest = () => reports.states.at(-1)
  const pass = async (timeMs: number): Promise<void> => {
    for (let left = timeMs; left > 0; left -= 1_000) await world.pass(1_000)
  }

  beforeEach(() => {
    world = createHeldWorld()
    reports = createReports()
    source = createSource()
  })
  afterEach(async () => {
    stop.abort()
    await world.pass(0)
    await running
  })

  it('for 30 s after its start is stalled until the first batch', async () => {
    start()
    await pass(STALLED_AFTER_MS - 2_000)
    expect(newest()?.state).to.equal('waiting')
    await pass(3_000)
    expect(newest()).to.include({ state: 'stalled' })
    expect(newest()?.error).to.match(/^No progress for 30 s\./)
    source.give({ kind: 'caught_up' })
    await pass(1_000)
    expect(newest()).to.deep.equal({ name: 'tried', state: 'live', position: 0n })
  })

  it('because its subscription is interrupted is waiting, and then stalled with the reason', async () => {
    start()
    source.give({ kind: 'checkpoint', position: 7n })
    source.give({ kind: 'caught_up' })
    await pass(1_000)
    source.give({ kind: 'interrupted', error: new Error('The store is gone.') })
    await pass(1_000)
    expect(newest()).to.include({ state: 'waiting', position: 7n, dependency: 'event store' })
    expect(newest()?.error).to.include('The store is gone.')
    await pass(STALLED_AFTER_MS)
    source.give({ kind: 'interrupted', error: new Error('The store is gone.') })
    await pass(1_000)
    expect(newest()?.state).to.equal('stalled')
    expect(newest()?.error).to.include('No progress for 30 s.').and.to.include('The store is gone.')
    source.give({ kind: 'caught_up' })
    await pass(1_000)
    expect(newest()).to.deep.equal({ name: 'tried', state: 'live', position: 7n })
  })

  it('because a batch hangs is stalled, also without an error', async () => {
    const hanging = Promise.withResolvers<void>()
    start(() => hanging.promise)
    source.give({ kind: 'caught_up' })
    await pass(2 * STALLED_AFTER_MS)
    expect(newest()?.state).to.equal('live')
    source.give({ kind: 'checkpoint', position: 7n })
    await pass(STALLED_AFTER_MS + 2_000)
    expect(newest()?.state).to.equal('stalled')
    hanging.resolve()
    await pass(1_000)
    expect(newest()).to.include({ state: 'live', position: 7n })
  })

  it('because there are no events stays live', async () => {
    start()
    source.give({ kind: 'caught_up' })
    await pass(10 * STALLED_AFTER_MS)
    expect(newest()).to.deep.equal({ name: 'tried', state: 'live', position: 0n })
  })

  it('because another process runs it stays waiting', async () => {
    const { database, attempted } = databaseThatRefuses()
    start(undefined, database)
    for (let waitedMs = 0; waitedMs < 10 * STALLED_AFTER_MS; waitedMs += 1_000) {
      attempted()
      await pass(1_000)
    }
    expect(reports.states).to.deep.equal([{ name: 'tried', state: 'waiting', position: 0n }])
  })

  it('because the attempts to acquire its lease fail is stalled with the reason, until another process has it', async () => {
    const { database, attempted } = databaseThatRefuses()
    start(undefined, database)
    for (let waitedMs = 0; waitedMs < STALLED_AFTER_MS + 2_000; waitedMs += 1_000) {
      attempted(new Error('permission denied for schema ledger_meta'))
      await pass(1_000)
    }
    expect(newest()?.state).to.equal('stalled')
    expect(newest()?.error).to.match(/^No progress for 30 s\. permission denied/)
    attempted()
    expect(newest()).to.deep.equal({ name: 'tried', state: 'waiting', position: 0n })
  })

  it('because an attempt to acquire its lease hangs is stalled, also without an error', async () => {
    const { database, attempted } = databaseThatRefuses()
    start(undefined, database)
    attempted()
    await pass(STALLED_AFTER_MS - 2_000)
    expect(newest()?.state).to.equal('waiting')
    await pass(4_000)
    expect(newest()?.state).to.equal('stalled')
  })

  it('because it loses its lease repeatedly is stalled, and stays so', async () => {
    const database = { withLease: () => world.sleep(1_000) } as Partial<Database> as Database
    start(undefined, database)
    await pass(STALLED_AFTER_MS + 10_000)
    expect(reports.states.map(({ state }) => state)).to.deep.equal(['waiting', 'stalled'])
  })
})
