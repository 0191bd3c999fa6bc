import { createHash } from 'node:crypto'
import { expect } from 'chai'
import { jsonl } from '../../src/adapters/files/jsonl.ts'
import { proveFacts } from '../../src/commands/factCounts.ts'
import { FACTS, sealManifest } from '../../src/commands/manifests.ts'
import { positionOf } from '../../src/feeds/checkpoints.ts'
import { deadLettersOfKey } from '../../src/feeds/deadLetters.ts'
import { projectorOf } from '../../src/feeds/projector.ts'
import { readModels } from '../../src/feeds/readModels.ts'
import type { Database, Sql, StoredEvent } from '../../src/ports.ts'
import { writeExportFile } from '../../src/processes/exports/writeFile.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import { createTestLedger, feedAll, fillLog, useTestPostgres } from '../feeds/fixtures.ts'
import { eventually } from '../support/eventually.ts'
import type { MemoryLog } from '../support/memoryStore.ts'
import { sharedService } from '../support/service.ts'
import { caller, startVariant } from '../support/serviceVariants.ts'

const TOPIC = 'ledger.invoice.v1'
const FACT_TYPES = ['InvoiceApproved', 'InvoicePaid', 'InvoiceVoided']
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

describe('a proof of facts, while the projector has some parked,', () => {
  const postgres = useTestPostgres()
  let log: MemoryLog
  let database: Database
  let key: string
  let parked: readonly StoredEvent[]

  beforeEach(async () => {
    log = await fillLog(6)
    database = await postgres.ledgerDatabase()
    const paid = log.events.find(({ type }) => type === 'InvoicePaid') ?? expect.fail()
    key = paid.stream.slice('invoice-'.length)
    const at = log.events.findIndex(({ stream, revision }) => stream === paid.stream && revision === 1n)
    const poison = { ...(log.events[at] ?? expect.fail()), type: 'InvoiceVanished' }
    const events = log.events.with(at, poison)
    parked = events.filter(({ stream, revision }) => stream === paid.stream && revision > 0n)
    await feedAll(projector(), { ...log, events })
    // The record of what was parked is in the log too.
    await feedAll(projector(), log)
  })

  const projector = () => projectorOf({ database, store: log.open(), world: realWorld() }, readModels, () => undefined)
  const head = (): bigint => log.events.at(-1)?.position ?? 0n
  const hashOf = (ids: readonly string[]): string =>
    createHash('sha256')
      .update(ids.map(id => `${id}\n`).join(''))
      .digest('hex')
  const invoiceFacts = (): readonly StoredEvent[] => log.events.filter(({ type }) => FACT_TYPES.includes(type))
  const visible = (): string[] => invoiceFacts().flatMap(({ id, stream }) => (stream.endsWith(key) ? [] : [id]))
  /** The dead letters, and the dead letter that may be a fact of a newer build. */
  const missing = () =>
    parked
      .filter(({ type }) => type === 'InvoiceVanished' || FACT_TYPES.includes(type))
      .map(({ id, position }) => ({ id, position }))
  const release = async (): Promise<void> => {
    const stop = new AbortController()
    const run = await projector().beginRun(2n, stop.signal)
    const serving = run.background?.()
    let reached = await positionOf(database.sql, FACTS)
    // Replays begin when the run has read the event that it appended at its start.
    await eventually(async () => {
      const newer = log.events.filter(({ position }) => position > reached)
      reached = newer.at(-1)?.position ?? reached
      if (newer.length > 0) await run.processBatch(newer, reached)
      return (await deadLettersOfKey(database.sql, FACTS, key)).length === 0
    })
    stop.abort()
    await serving
  }
  const seal = async () => {
    const ledger = createTestLedger(log)
    const reached = (): Promise<bigint> => positionOf(database.sql, FACTS)
    return (await sealManifest({ ledger, sql: database.sql, projectedUpTo: reached }, TOPIC, 'test')).sealed
  }

  it('that is sealed names them, and remains correct after their replay', async () => {
    const end = head()
    const sealed = await seal()
    expect(sealed).to.deep.include({ count: visible().length, sha256: hashOf(visible()), to_position: end })
    expect(sealed?.missing).to.deep.equal(missing())
    await release()
    const [proof] = await proveFacts(database.sql, { topics: [TOPIC], from: 0n, to: end })
    const all = invoiceFacts().map(({ id }) => id)
    expect(proof).to.deep.equal({ topic: TOPIC, count: all.length, sha256: hashOf(all), missing: [] })
    const named = new Set(sealed?.missing?.map(({ id }) => id))
    expect(hashOf(all.filter(id => !named.has(id)))).to.equal(sealed?.sha256)
  })

  it('that is sealed ends before facts that exceed the list of missing ones', async () => {
    const [first] = missing()
    await database.sql(
      `insert into parked_facts (delivery, position, key, stream, revision, event_id, type, tenant_id, reason, attempts,
          first_failed_at)
        select 'facts_v1', 1000000 + n * 10, $1, 'invoice-' || $1, 100 + n, 'parked-' || n, 'InvoicePaid', 'acme', 'x', 0,
          now() from generate_series(1, 200) n`,
      [key],
    )
    await database.sql(`update checkpoints set position = 2000000 where name = 'facts_v1'`)
    const sealed = await seal()
    expect(sealed?.missing).to.have.length(100)
    expect(sealed?.missing?.[0]).to.deep.equal(first)
    const last = sealed?.missing?.at(-1)
    expect(sealed?.to_position).to.equal((last?.position ?? 0n) + 9n)
    const next = await seal()
    expect(next?.from_position).to.equal((sealed?.to_position ?? 0n) + 1n)
    expect(next?.missing?.[0]?.id).to.equal('parked-99')
  })

  it('is made again when one of them is replayed meanwhile', async () => {
    let isFirst = true
    const sql: Sql = async (text, values) => {
      const rows = await database.sql(text, values)
      if (text.includes(`event->>'id'`) && isFirst) {
        isFirst = false
        await release()
      }
      return rows as never
    }
    const [proof] = await proveFacts(sql, { topics: [TOPIC], from: 0n, to: head() })
    const all = invoiceFacts().map(({ id }) => id)
    expect(proof).to.deep.equal({ topic: TOPIC, count: all.length, sha256: hashOf(all), missing: [] })
  })

  it('at GET /events/manifest names them to their own tenant alone', async () => {
    const read = async (tenant: string) => {
      const variant = await startVariant(await sharedService(), {
        database: () => database,
        authenticate: async () => ({ ...caller, tenant }),
      })
      const answer = await fetch(`${variant.api}/events/manifest?topic=${TOPIC}&to=${head()}`)
      await variant.close()
      return ((await answer.json()) as { items: readonly object[] }).items[0]
    }
    expect(await read('acme')).to.deep.include({
      count: visible().length,
      sha256: hashOf(visible()),
      missing: missing().map(({ id, position }) => ({ id, position: position.toString() })),
    })
    expect(await read('another')).to.deep.include({ count: 0, missing: [] })
  })

  it('of an export ends before them, and that of other tables at the checkpoint', async () => {
    const formats = { csv: jsonl, jsonl, parquet: jsonl }
    const dependencies = { database, ledger: createTestLedger(log), formats, logger: silent }
    const exported = async (resource: 'invoices' | 'orders', tenant: string) => {
      const terms = { resource, format: 'jsonl' as const, filters: {}, expires_at: '2999-01-01T00:00:00Z' }
      const requested = { id: `op_${resource}_${tenant}`, attempt: 1, tenant, terms }
      return (await writeExportFile(dependencies, requested, new AbortController().signal)).to_position
    }
    expect(await exported('invoices', 'acme')).to.equal((parked[0]?.position ?? 0n) - 1n)
    expect(await exported('orders', 'acme')).to.equal(head())
    expect(await exported('invoices', 'another')).to.equal(head())
    await release()
  })
})
