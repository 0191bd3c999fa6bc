import type { ExportFormat, ExportTerms, FileSummary } from '../../../streams/operation/index.ts'
import { erasedBefore, keepErasedBefore } from './exportErasures.ts'
import { type Attempt, fileSink, type Progress, saveProgress } from './exportFiles.ts'
import type { Ledger } from '../../commands/commandHandler.ts'
import { readTexts, tokensOf, withTexts } from '../../personalTexts/personalTexts.ts'
import { positionOf } from '../../feeds/checkpoints.ts'
import type { Database, FileFormat, Logger, Sql } from '../../ports.ts'
import { type ExportedReadModel, exportedReadModels } from './exportedReadModels.ts'

export type ExportDependencies = {
  readonly database: Database
  readonly ledger: Ledger
  readonly formats: Readonly<Record<ExportFormat, FileFormat>>
  readonly logger: Logger
}

export type ExportAttempt = Attempt & { readonly tenant: string; readonly terms: ExportTerms }

/** Small, so writing a batch does not delay the other work of this process. */
const BATCH_ROWS = 500
const PROGRESS_EVERY_MS = 500
const POLL_MS = 50
/** A read model that is behind for longer may stay so: its exports must not keep the workers from others. */
const REFLECTED_WAIT_MAX_MS = 2_000

/** Waits until the read model has passed the request, so that the caller's last write is in the file; false if too late. */
export const untilReflected = async (
  { database, ledger }: ExportDependencies,
  { name }: ExportedReadModel,
  position: bigint,
  signal: AbortSignal,
): Promise<boolean> => {
  const { world } = ledger
  const untilMs = world.monotonicMs() + REFLECTED_WAIT_MAX_MS
  while ((await positionOf(database.sql, name)) < position) {
    signal.throwIfAborted()
    if (world.monotonicMs() >= untilMs) return false
    await world.sleep(POLL_MS, signal)
  }
  return true
}

/** Saves the progress, every PROGRESS_EVERY_MS at most. */
const progressOf = ({ database, ledger: { world } }: ExportDependencies, { id, attempt }: Attempt, total: bigint) => {
  const beganAtMs = world.monotonicMs()
  let savedAtMs = beganAtMs
  let tick = 0
  return async (done: bigint): Promise<void> => {
    const now = world.monotonicMs()
    if (tick > 0 && now - savedAtMs < PROGRESS_EVERY_MS) return
    savedAtMs = now
    const tookMs = Math.round(now - beganAtMs)
    const rate = tookMs > 0 ? (done * 1_000n) / BigInt(tookMs) : 0n
    const eta_seconds = rate > 0n ? (total - done + rate - 1n) / rate : null
    const progress: Progress = { attempt, tick: ++tick, done, total, rate, eta_seconds }
    await saveProgress(database.sql, id, progress)
  }
}

/** The checkpoint, or before the first dead letter of this or an unknown ('') tenant. Other rows may be newer. */
const completeUpTo = async (sql: Sql, { name }: ExportedReadModel, tenant: string): Promise<bigint> => {
  const asOf = await positionOf(sql, name)
  const [parked] = await sql<{ position: bigint | null }>(
    `select min(position) as position from parked_facts where delivery = $1 and tenant_id in ($2, '')`,
    [name, tenant],
  )
  const first = parked?.position ?? null
  return first === null || first > asOf ? asOf : first - 1n
}

/** As of one moment: rows and position are of one snapshot. Memory holds a batch, a buffer and a chunk. Throws on abort. */
export const writeExportFile = async (
  dependencies: ExportDependencies,
  exportAttempt: ExportAttempt,
  signal: AbortSignal,
): Promise<FileSummary> => {
  const { database, formats } = dependencies
  const { terms, tenant } = exportAttempt
  const source = exportedReadModels[terms.resource]
  const selection = { tenant, filters: terms.filters }
  return database.snapshot(async ({ sql, batches }) => {
    // Before the first query, which begins the snapshot: the rows of a table that a rebuild puts in place after it are
    // not visible in it (feeds/rebuild). A locked table is not replaced.
    await sql(`lock table ${source.name} in access share mode`)
    const upTo = await completeUpTo(sql, source, tenant)
    const counting = source.count(selection)
    const [counted] = await sql<{ count: bigint }>(counting.text, counting.values)
    const report = progressOf(dependencies, exportAttempt, counted?.count ?? 0n)
    const sink = fileSink(database.sql, exportAttempt)
    const writer = formats[terms.format](source.columns)
    const erased = await erasedBefore(sql, { tenant, resource: terms.resource })
    let rowCount = 0
    await report(0n)
    for await (const rows of batches(source.rows(selection), BATCH_ROWS)) {
      signal.throwIfAborted()
      const tokens = tokensOf(rows)
      const texts = await readTexts(sql, tenant, tokens)
      const shown = tokens.length === 0 ? rows : rows.map(row => withTexts(row, texts))
      await sink.write(writer.write(shown.map(source.view)))
      rowCount += rows.length
      await report(BigInt(rowCount))
    }
    signal.throwIfAborted()
    await sink.write(writer.end())
    const written = await sink.end()
    await keepErasedBefore(database.sql, exportAttempt, erased)
    return { ...written, row_count: rowCount, from_position: 0n, to_position: upTo }
  })
}
