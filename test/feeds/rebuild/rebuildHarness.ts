import { expect } from 'chai'
import { payments, type PaymentRow } from '../../../projections/payments/projection.ts'
import { projections } from '../../../projections/index.ts'
import { realWorld } from '../../../src/lib/clockAndRandomness.ts'
import { projectorOf } from '../../../src/feeds/projector.ts'
import type { ReadModel } from '../../../src/feeds/readModel.ts'
import { readModels, rowsOf } from '../../../src/feeds/readModels.ts'
import { executeNext, type RebuildLoop } from '../../../src/feeds/rebuild/rebuildLoop.ts'
import { rebuildById, type RebuildKind, type RebuildRow, requestRebuild } from '../../../src/feeds/rebuild/requests.ts'
import type { Database, EventStore, World } from '../../../src/ports.ts'
import type { MemoryLog } from '../../support/memoryStore.ts'
import { feedAll, rowsIn } from '../fixtures.ts'

/** Rebuilds on a log in memory and a real Postgres, step by step. */

const QUIET = { info: () => undefined, warn: () => undefined, error: () => undefined }

/** A payments read model whose handler of PaymentSucceeded differs from that of the live rows. */
export const withChangedHandler = (): readonly ReadModel[] =>
  readModels.map(model =>
    model.name === payments.name
      ? rowsOf({
          ...payments,
          on: {
            ...payments.on,
            PaymentSucceeded: (): Partial<PaymentRow> => ({ state: 'succeeded', failure_code: 'none' }),
          },
        })
      : model,
  )

export const createRebuildHarness = (database: Database, log: MemoryLog) => {
  let ids = 0
  const world = realWorld()
  const project = (models: readonly ReadModel[] = readModels): Promise<void> =>
    feedAll(
      projectorOf({ database, store: log.open(), world }, models, (name, error) =>
        expect.fail(`${name}: ${String(error)}`),
      ),
      log,
    )
  const loop = (changes: Partial<RebuildLoop> = {}): RebuildLoop => ({
    ...{ database, store: log.open(), world, logger: QUIET, models: readModels },
    ...changes,
  })
  const request = async (kind: RebuildKind, projection: string): Promise<string> => {
    const id = `op_${(ids += 1)}`
    const requested = await database.transaction(sql =>
      requestRebuild(sql, { id, kind, projection, requested_by: 'operator' }),
    )
    expect(requested, `${kind} ${projection}`).to.deep.equal({ ok: true, id })
    return id
  }
  /** Executes everything that is requested. `epoch`: of the process. */
  const execute = async (changes: Partial<RebuildLoop> = {}, epoch = 1n, signal = new AbortController().signal) => {
    while (!signal.aborted && (await executeNext(loop(changes), { epoch, signal })));
  }
  const row = async (id: string): Promise<RebuildRow> => (await rebuildById(database.sql, id)) ?? expect.fail(id)
  /** The object that is the live table: another one after a switch. */
  const tableId = async (name: string): Promise<string> =>
    (await database.sql<{ id: string }>(`select to_regclass($1)::oid::text as id`, [name]))[0]?.id ?? ''
  const allRows = async (): Promise<unknown> =>
    Object.fromEntries(
      await Promise.all(Object.values(projections).map(async ({ name }) => [name, await rowsIn(database, name)])),
    )
  const tablesIn = async (schema: string): Promise<string[]> =>
    (
      await database.sql<{ name: string }>(
        'select tablename as name from pg_tables where schemaname = $1 order by tablename',
        [schema],
      )
    ).map(({ name }) => name)
  return { project, loop, request, execute, row, tableId, allRows, tablesIn, world }
}
export type RebuildHarness = ReturnType<typeof createRebuildHarness>

/** A store whose subscription calls `onEvent` before each event that it delivers. */
export const watchedStore = (log: MemoryLog, onEvent: (count: number) => Promise<void> | void): EventStore => {
  const store = log.open()
  let count = 0
  return {
    ...store,
    subscribe: async function* (options) {
      for await (const item of store.subscribe(options)) {
        if (item.kind === 'event') await onEvent((count += 1))
        yield item
      }
    },
  }
}

export type { World }
