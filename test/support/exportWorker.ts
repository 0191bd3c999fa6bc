import { expect } from 'chai'
import { Client as PostgresClient } from 'pg'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import type { EventStore } from '../../src/ports.ts'
import type { ExportFormat } from '../../streams/operation/index.ts'
import { type Client, clientOf } from './client.ts'
import { eventually } from './eventually.ts'
import { askFor, fetched, foldedUpTo, manyPayments } from './exportSteps.ts'
import { inFormat } from './exportFileReaders.ts'
import { residentMib } from './residentMemory.ts'
import { type ServiceProcess, startProcess, temporaryDirectory } from './service.ts'
import { removeFolder } from './folders.ts'

/**
 * Exports of many payments by a worker in its own process, so that it can be killed alone and its memory measured
 * alone.
 */

const TENANT = 'many'
/** Long enough for a busy machine to kill the worker long before the last chunk. */
const CHUNK_SECONDS = 1
/** The memory of an export does not depend on its number of rows. */
export const GROWTH_MAX_MIB = 60

export type ExportWorker = {
  readonly client: Client
  readonly store: EventStore
  /**
   * Starts an export, kills its worker the given number of times before the end, and compares the file with the
   * streams.
   */
  readonly killedInTheMiddle: (format: ExportFormat, times: number) => Promise<void>
  /** The growth of the worker's memory, in MiB, while it exports all payments. */
  readonly growthOf: (format: ExportFormat) => Promise<number>
  readonly close: () => Promise<void>
}

export const openExportWorker = async (count: number): Promise<ExportWorker> => {
  const dataDir = await temporaryDirectory()
  const workerDir = await temporaryDirectory()
  const main = await startProcess(dataDir, { LEDGER_ROLES: 'api,projector' })
  const { event_store, postgres } = main.addresses
  const client = clientOf(main.api, await main.token({ tenant: TENANT }))
  const store = openEventStore({ connectionString: event_store })
  const sql = new PostgresClient({ connectionString: postgres })
  await sql.connect()
  const startWorker = (): Promise<ServiceProcess> =>
    startProcess(workerDir, { LEDGER_ROLES: 'worker', EVENTSTORE_URL: event_store, DATABASE_URL: postgres })
  let worker: ServiceProcess = await startWorker()

  await manyPayments(store, TENANT, count)
  const known = `select count(*) as count from payments_v1 where tenant_id = $1`
  await eventually(async () => Number((await sql.query(known, [TENANT])).rows[0]?.count) === count)

  const chunksOf = async (id: string, attempt: number): Promise<number> => {
    const text = 'select count(*) as count from export_chunks where operation_id = $1 and attempt = $2'
    return Number((await sql.query(text, [id, attempt])).rows[0]?.count)
  }
  /** Delays every chunk, so that the worker can be killed between two. */
  const delayChunks = async (seconds: number): Promise<void> => {
    await sql.query(`create or replace function hold_up() returns trigger language plpgsql as
      $$ begin perform pg_sleep(${seconds}); return new; end $$`)
    await sql.query(`create or replace trigger hold_up before insert on export_chunks
      for each row execute function hold_up()`)
  }
  const check = async (id: string, format: ExportFormat): Promise<void> => {
    const { manifest, rows } = await fetched(main, client, { id, tenant: TENANT })
    const folded = await foldedUpTo(store, 'payments', { tenant: TENANT, position: BigInt(manifest.to_position) })
    expect(rows).to.have.length(count)
    expect(folded).to.have.length(count)
    for (const [n, view] of folded.entries()) expect(rows[n]).to.deep.equal(inFormat(format, view))
  }

  return {
    client,
    store,
    killedInTheMiddle: async (format, times) => {
      await delayChunks(CHUNK_SECONDS)
      const id = await askFor(client, { resource: 'payments', format })
      for (let attempt = 1; attempt <= times; attempt++) {
        await eventually(async () => (await chunksOf(id, attempt)) >= 2)
        expect(await worker.end('SIGKILL')).to.equal('SIGKILL')
        expect((await client.get(`/operations/${id}`)).body.state).to.equal('running')
        worker = await startWorker()
      }
      await delayChunks(0)
      await check(id, format)
      const events: string[] = []
      for await (const { type } of store.readStream(`operation-${id}`)) events.push(type)
      const attempts = Array.from({ length: times + 1 }, () => 'OperationStarted')
      expect(events).to.deep.equal(['ExportRequested', ...attempts, 'ExportCompleted'])
      for (let attempt = 1; attempt <= times; attempt++) expect(await chunksOf(id, attempt)).to.equal(0)
    },
    growthOf: async format => {
      const before = await residentMib(worker.pid)
      const id = await askFor(client, { resource: 'payments', format })
      let most = before
      await eventually(async () => {
        most = Math.max(most, await residentMib(worker.pid))
        return (await client.get(`/operations/${id}`)).body.state === 'succeeded'
      })
      await check(id, format)
      return most - before
    },
    close: async () => {
      await store.close()
      await sql.end()
      await worker.end('SIGTERM')
      await main.end('SIGTERM')
      for (const directory of [dataDir, workerDir]) await removeFolder(directory)
    },
  }
}
