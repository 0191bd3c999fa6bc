import { randomUUID } from 'node:crypto'
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises'
import { csv } from '../../../src/adapters/files/csv.ts'
import { StartupError, systemCode } from '../../../src/lib/startupError.ts'
import type { Outcome } from './outcomes.ts'
import { decimalOf } from '../../demo/money.ts'

/** Amounts are decimals with a point, as in the statement; `bigint` keeps a minus from being taken for a formula. */
const COLUMNS = {
  line: 'bigint',
  status: 'text',
  booking_date: 'text',
  amount: 'bigint',
  currency: 'text',
  reference: 'text',
  payment_id: 'text',
  payment_amount: 'bigint',
  payment_currency: 'text',
  detail: 'text',
} as const

export type ReportRow = { readonly [Name in keyof typeof COLUMNS]: string | number | null }

export const rowOf = ({ status, line, payment, detail }: Outcome): ReportRow => ({
  line: line?.line ?? null,
  status,
  booking_date: line?.bookedOn ?? null,
  amount: line ? `${line.kind === 'debit' ? '-' : ''}${decimalOf(line.amount, line.currency)}` : null,
  currency: line?.currency ?? null,
  reference: line ? (line.references[0] ?? line.texts[0] ?? null) : (payment?.reference ?? null),
  payment_id: payment?.id ?? null,
  payment_amount: payment ? decimalOf(payment.amount, payment.currency) : null,
  payment_currency: payment?.currency ?? null,
  detail: detail === '' ? null : detail,
})

const BUFFERED_ROWS = 1_000

/** Opens a report beside its place, so that a report in its place is always a whole one. Throws a StartupError. */
export const openReport = async (path: string) => {
  const unfinished = `${path}.${randomUUID()}.part`
  const refuse = (error: unknown): never => {
    throw new StartupError(`The report ${path} cannot be written (${systemCode(error) ?? String(error)}).`, error)
  }
  // A folder would refuse the finished report, when the payments are settled.
  if ((await stat(path).catch(() => undefined))?.isDirectory())
    throw new StartupError(`The report ${path} cannot be written: it is a folder.`)
  const file: FileHandle = await open(unfinished, 'wx').catch(refuse)
  const format = csv(COLUMNS)
  let rows: ReportRow[] = []
  const flush = async (bytes: Uint8Array): Promise<void> => {
    await file.writeFile(bytes).catch(refuse)
    rows = []
  }
  return {
    write: async (row: ReportRow): Promise<void> => {
      rows.push(row)
      if (rows.length >= BUFFERED_ROWS) await flush(format.write(rows))
    },
    /** Puts the report in its place. */
    finish: async (): Promise<void> => {
      if (rows.length > 0) await flush(format.write(rows))
      await flush(format.end())
      await file.sync().catch(refuse)
      await rename(unfinished, path).catch(refuse)
    },
    discard: async (): Promise<void> => {
      await file.close()
      await rm(unfinished, { force: true })
    },
  }
}
