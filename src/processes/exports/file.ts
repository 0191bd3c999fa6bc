import type { ExportFormat, ExportTerms, FileSummary } from '../../../streams/operation/index.ts'
import { type Attempt, fileSink, type Progress, saveProgress } from '../../commands/exportFiles.ts'
import type { Ledger } from '../../commands/handle.ts'
import { positionOf } from '../../feeds/checkpoints.ts'
import type { Database, FileFormat, Log, Sql } from '../../ports.ts'
import { type Source, sources } from './sources.ts'

export type ExportDependencies = {
  readonly database: Database
  readonly ledger: Ledger
  readonly formats: Readonly<Record<ExportFormat, FileFormat>>
  readonly log: Log
}

/** One attempt at one export. */
export type Asked = Attempt & { readonly tenant: string; readonly terms: ExportTerms }

/** Few enough that what else this process does is not kept waiting while they are written. */
const BATCH_ROWS = 500
const PROGRESS_EVERY_MS = 500
const POLL_MS = 50

/**
 * Waits until the read model knows everything that had happened when the export was asked for: the caller's own last
 * write is in the file. The request is an event of the log too, so that every checkpoint comes to it.
 */
export const untilReflected = async (
  { database, ledger }: ExportDependencies,
  { name }: Source,
  position: bigint,
  signal: AbortSignal,
): Promise<void> => {
  while ((await positionOf(database.sql, name)) < position) {
    signal.throwIfAborted()
    await ledger.world.sleep(POLL_MS, signal)
  }
}

/** Tells how far it has come, now and then. */
const progressOf = ({ database, ledger: { world } }: ExportDependencies, { id, attempt }: Attempt, total: bigint) => {
  const beganAtMs = world.monotonicMs()
  let toldAtMs = beganAtMs
  let tick = 0
  return async (done: bigint): Promise<void> => {
    const now = world.monotonicMs()
    if (tick > 0 && now - toldAtMs < PROGRESS_EVERY_MS) return
    toldAtMs = now
    const tookMs = Math.round(now - beganAtMs)
    const rate = tookMs > 0 ? (done * 1_000n) / BigInt(tookMs) : 0n
    const eta_seconds = rate > 0n ? (total - done + rate - 1n) / rate : null
    const progress: Progress = { attempt, tick: ++tick, done, total, rate, eta_seconds }
    await saveProgress(database.sql, id, progress)
  }
}

/**
 * How far the file can be said to be whole: to where the read model has got, or before the first event that it holds
 * back. The rows of other keys may be newer than that.
 */
const wholeUpTo = async (sql: Sql, { name }: Source, tenant: string): Promise<bigint> => {
  const asOf = await positionOf(sql, name)
  const [held] = await sql<{ position: bigint | null }>(
    `select min(position) as position from parked_facts where delivery = $1 and tenant_id in ($2, '')`,
    [name, tenant],
  )
  const first = held?.position ?? null
  return first === null || first > asOf ? asOf : first - 1n
}

/**
 * Writes the whole file as of one moment: the rows, and the position that they are as of, are read in one snapshot. In
 * memory there is never more than a batch of rows, what the format keeps back of them, and a chunk. Throws when the
 * signal aborts.
 */
export const makeFile = async (parts: ExportDependencies, asked: Asked, signal: AbortSignal): Promise<FileSummary> => {
  const { database, formats } = parts
  const { terms, tenant } = asked
  const source = sources[terms.resource]
  const wanted = { tenant, filters: terms.filters }
  return database.snapshot(async ({ sql, batches }) => {
    const upTo = await wholeUpTo(sql, source, tenant)
    const counting = source.count(wanted)
    const [counted] = await sql<{ count: bigint }>(counting.text, counting.values)
    const tell = progressOf(parts, asked, counted?.count ?? 0n)
    const sink = fileSink(database.sql, asked)
    const writer = formats[terms.format](source.columns)
    let rowCount = 0
    await tell(0n)
    for await (const rows of batches(source.rows(wanted), BATCH_ROWS)) {
      signal.throwIfAborted()
      await sink.write(writer.write(rows.map(source.view)))
      rowCount += rows.length
      await tell(BigInt(rowCount))
    }
    signal.throwIfAborted()
    await sink.write(writer.end())
    const written = await sink.end()
    return { ...written, row_count: rowCount, from_position: 0n, to_position: upTo }
  })
}
