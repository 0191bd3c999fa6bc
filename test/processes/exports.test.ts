import { expect } from 'chai'
import { csv } from '../../src/adapters/files/csv.ts'
import { jsonl } from '../../src/adapters/files/jsonl.ts'
import { parquet } from '../../src/adapters/files/parquet.ts'
import { operationEntity } from '../../src/commands/entities.ts'
import { handle } from '../../src/commands/commandHandler.ts'
import { moveCheckpoint, acquireCheckpoint } from '../../src/feeds/checkpoints.ts'
import { projectorOf } from '../../src/feeds/projector.ts'
import { readModels } from '../../src/feeds/readModels.ts'
import type { Database } from '../../src/ports.ts'
import { exportsFeed } from '../../src/processes/exports/exports.ts'
import { exportedReadModels } from '../../src/processes/exports/exportedReadModels.ts'
import { context } from '../commands/fixtures.ts'
import { eventually } from '../support/eventually.ts'
import { id, requestExport } from '../streams/samples.ts'
import { type ProcessHarness, useProcessHarness } from './harness.ts'

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }
/** Wakes the process without letting time pass, so that an attempt that failed is not tried again. */
const AT_ONCE_MS = 0
const EPOCH = 1n
/** Longer than the files of exports are kept. */
const EXPIRED_AFTER_MS = 400 * 24 * 60 * 60 * 1_000
const TICK_MS = 100
const PASSES = 20
const PASSES_MAX = 2_000

/** Moves the checkpoint of the read model to the position, so that an export need not wait for earlier events. */
const markProjected = async ({ database: { sql } }: ProcessHarness, upTo: bigint): Promise<void> => {
  const { name } = exportedReadModels[requestExport.resource]
  await acquireCheckpoint(sql, name, EPOCH)
  await moveCheckpoint(sql, [name], upTo, EPOCH)
}
const request = ({ ledger }: ProcessHarness, n = 1, tenant = 'acme') =>
  handle(ledger, operationEntity, id('op', n), {
    command: requestExport,
    context: context({ tenant }),
    load: 'assume_empty',
  })

describe('the exports of several tenants', () => {
  const harness = useProcessHarness()

  it('begin with one of each tenant, although one tenant has requested several before', async () => {
    const { database, ledger, log, world } = harness
    const run = await harness.start(exportsFeed({ database, ledger, formats: {} as never, logger: silent }))
    for (const n of [1, 2, 3]) await request(harness, n, 'many')
    await request(harness, 4, 'one')
    await markProjected(harness, log.head())
    await run.processNew()
    const begun = (): readonly string[] =>
      log.events.flatMap(({ type, stream }) => (type === 'OperationStarted' ? [stream] : []))
    await eventually(async () => {
      await world.pass(AT_ONCE_MS)
      return begun().length >= 2
    })
    // An attempt fails because there are no formats, so that others may have begun since.
    expect(begun().slice(0, 2)).to.have.members([`operation-${id('op', 1)}`, `operation-${id('op', 4)}`])
  })
})

describe('a tenant with many exports', () => {
  const harness = useProcessHarness()

  it('leaves one worker to the others, also while no other tenant has an export', async () => {
    const { database, ledger, log, world } = harness
    const release = Promise.withResolvers<never>()
    release.promise.catch(() => undefined)
    // Every attempt that has begun goes on until the end of the test.
    const held: Database = { ...database, snapshot: () => release.promise }
    const run = await harness.start(exportsFeed({ database: held, ledger, formats: {} as never, logger: silent }))
    const begun = (): readonly string[] =>
      log.events.flatMap(({ type, stream }) => (type === 'OperationStarted' ? [stream] : []))
    const untilBegun = (count: number) =>
      eventually(async () => {
        await world.pass(AT_ONCE_MS)
        return begun().length >= count
      })
    for (const n of [1, 2, 3]) await request(harness, n, 'many')
    await markProjected(harness, log.head())
    await run.processNew()
    await untilBegun(1)
    for (let pass = 0; pass < PASSES; pass++) await world.pass(TICK_MS)
    expect(begun()).to.deep.equal([`operation-${id('op', 1)}`])
    await request(harness, 4, 'one')
    await markProjected(harness, log.head())
    await run.processNew()
    await untilBegun(2)
    expect(begun()).to.deep.equal([`operation-${id('op', 1)}`, `operation-${id('op', 4)}`])
    release.reject(new Error('The test has ended.'))
  })
})

describe('exports of a read model that is behind', () => {
  const harness = useProcessHarness()

  it('leave the workers to exports of others', async () => {
    const { database, ledger, log, world } = harness
    const run = await harness.start(exportsFeed({ database, ledger, formats: {} as never, logger: silent }))
    for (const [n, tenant] of [
      [1, 'acme'],
      [2, 'globex'],
    ] as const)
      await request(harness, n, tenant)
    await run.processNew()
    await world.pass(AT_ONCE_MS)
    const command = { ...requestExport, resource: 'orders' as const }
    const other = id('op', 3)
    await handle(ledger, operationEntity, other, {
      command,
      context: context({ tenant: 'initech' }),
      load: 'assume_empty',
    })
    const { name } = exportedReadModels.orders
    await acquireCheckpoint(database.sql, name, EPOCH)
    await moveCheckpoint(database.sql, [name], log.head(), EPOCH)
    await run.processNew()
    const begun = (): readonly string[] =>
      log.events.flatMap(({ type, stream }) => (type === 'OperationStarted' ? [stream] : []))
    for (let pass = 0; pass < PASSES_MAX && begun().length === 0; pass += 1) await world.pass(TICK_MS)
    expect(begun()).to.deep.equal([`operation-${other}`])
  })
})

describe('exports that have expired', () => {
  const harness = useProcessHarness()

  it('are expired though the stream of an earlier one cannot be read', async () => {
    const { database, ledger, log, world } = harness
    const errors: unknown[] = []
    const logged = { ...silent, error: (details: object) => void errors.push(details) }
    for (const n of [1, 2]) await request(harness, n)
    const { aggregates } = ledger
    const unreadable: typeof ledger = {
      ...ledger,
      aggregates: {
        ...aggregates,
        first: (entity, key) =>
          key === id('op', 1) ? Promise.reject(new Error('An unknown event.')) : aggregates.first(entity, key),
      },
    }
    const projector = projectorOf({ database, store: log.open(), world }, readModels, () => undefined)
    await (await harness.start(projector)).processNew()
    await harness.start(exportsFeed({ database, ledger: unreadable, formats: {} as never, logger: logged }))
    await world.pass(EXPIRED_AFTER_MS)
    await eventually(async () => {
      await world.pass(TICK_MS)
      return log.events.some(({ type, stream }) => type === 'OperationExpired' && stream === `operation-${id('op', 2)}`)
    })
    expect(errors).to.have.length(1)
  })
})

describe('an export', () => {
  const READS = 3
  const RETRY_MS = 1_000
  const harness = useProcessHarness()

  it('begins after its read model has all events before the request', async () => {
    const { database, ledger, log, world } = harness
    let reads = 0
    const watched: Database = {
      ...database,
      sql: (text, values) => {
        if (text.includes('from checkpoints')) reads += 1
        return database.sql(text, values)
      },
    }
    const run = await harness.start(exportsFeed({ database: watched, ledger, formats: {} as never, logger: silent }))
    await request(harness)
    await markProjected(harness, log.head() - 1n)
    const hasBegun = (): boolean => log.events.some(({ type }) => type === 'OperationStarted')
    await run.processNew()
    reads = 0
    await eventually(async () => {
      await world.pass(AT_ONCE_MS)
      return reads >= READS || hasBegun()
    })
    expect(hasBegun()).to.equal(false)
    await markProjected(harness, log.head())
    await eventually(async () => {
      await world.pass(AT_ONCE_MS)
      return hasBegun()
    })
  })

  it('is attempted again when a replaced worker has superseded the attempt and does not complete it', async () => {
    const { database, ledger, log, world, openLedger } = harness
    const replacedWorker = openLedger()
    let isSuperseded = false
    const interrupted: Database = {
      ...database,
      snapshot: async work => {
        const made = await database.snapshot(work)
        if (!isSuperseded) {
          isSuperseded = true
          const command = { type: 'StartAttempt' as const, run: 'of the replaced worker' }
          const started = await handle(replacedWorker, operationEntity, id('op', 1), { command, context: context() })
          expect(started.ok).to.equal(true)
        }
        return made
      },
    }
    const formats = { jsonl, csv, parquet }
    const run = await harness.start(exportsFeed({ database: interrupted, ledger, formats, logger: silent }))
    expect((await request(harness)).ok).to.equal(true)
    await markProjected(harness, log.head())
    await run.processNew()
    await eventually(async () => {
      await world.pass(RETRY_MS)
      return log.events.some(({ type }) => type === 'ExportCompleted')
    })
    expect(log.events.filter(({ type }) => type === 'OperationStarted')).to.have.length(3)
  })
})
