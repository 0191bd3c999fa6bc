import pLimit from 'p-limit'
import { isDeferredAndNotFailed, type LedgerPayments, type Payment } from './ledgerPayments.ts'
import { namesInTexts, referencesIn } from './names.ts'
import {
  addReversal,
  afterSettlement,
  type ImportState,
  expected,
  type NamedLine,
  type NamedPayment,
  nextLineId,
  type Outcome,
  outcomeOf,
  type Proposal,
  type Reversals,
} from './outcomes.ts'
import type { StatementFile } from './statementFile.ts'
import type { StatementLine } from './statementLine.ts'

/**
 * Reconciles a statement with the deferred payments of the ledger. The progress is in the ledger alone: a settlement
 * has the id of its line, so that an import that ended at any moment is continued by the same command.
 */

export type Reconciliation = {
  readonly file: StatementFile
  readonly payments: LedgerPayments
  /** Settles nothing; the outcomes are those that an import would have. */
  readonly dryRun: boolean
  readonly signal: AbortSignal
  /** Called after each batch of lines. */
  readonly onProgress: (done: number, total: number) => void
}

export type Step = { readonly outcome: Outcome; readonly settledNow: boolean }

const BATCH_LINES = 32
const REQUESTS_AT_ONCE = 8

type Checked = { readonly total: number; readonly reversals: Reversals }

/** Reads the whole file before anything is changed. Throws a StatementError for a file that cannot be used. */
const check = async ({ file, signal }: Reconciliation): Promise<Checked> => {
  const reversals: Reversals = new Map()
  let total = 0
  for await (const line of file.lines()) {
    signal.throwIfAborted()
    total += 1
    if (line.kind !== 'reversal') continue
    addReversal(reversals, new Set([...referencesIn(line), ...namesInTexts(line)]), line)
  }
  return { total, reversals }
}

const uniqueById = <P extends Payment>(payments: readonly P[]): readonly P[] => [
  ...new Map(payments.map(payment => [payment.id, payment])).values(),
]

type Names = readonly string[]

const findNamed = async (payments: LedgerPayments, line: StatementLine, names: Names) => {
  const named: Payment[] = []
  for (const name of names) named.push(...(await payments.named(name)))
  const isExact = ({ amount, currency }: Payment): boolean => amount === line.amount && currency === line.currency
  // Lists may be behind: a payment that is pending there may have been settled by an earlier import.
  const withSettlement = async (payment: Payment): Promise<NamedPayment> =>
    line.kind === 'credit' && isDeferredAndNotFailed(payment) && isExact(payment)
      ? { ...payment, settledBy: await payments.settledBy(payment.id) }
      : payment
  return Promise.all(uniqueById(named).map(withSettlement))
}

/**
 * The payments that the line names: by its references, and by its free texts if those name none that can be settled, or
 * if the line has settled one of them. An earlier import may have done that before a payment had the line's reference.
 */
const paymentsOf = async (
  payments: LedgerPayments,
  { line, lineId }: Pick<NamedLine, 'line' | 'lineId'>,
): Promise<readonly NamedPayment[]> => {
  if (line.kind === 'not_booked') return []
  const isOwn = ({ settledBy }: NamedPayment): boolean => settledBy === lineId
  const references = referencesIn(line)
  const referenced = await findNamed(payments, line, references)
  const isReferenced = referenced.some(isDeferredAndNotFailed)
  if (isReferenced && (line.kind !== 'credit' || referenced.some(isOwn))) return referenced
  const others = namesInTexts(line).filter(name => !references.includes(name))
  const inTexts = await findNamed(payments, line, others)
  return isReferenced && !inTexts.some(isOwn) ? referenced : uniqueById([...referenced, ...inTexts])
}

const settle = async ({ payments, dryRun }: Reconciliation, proposal: Proposal): Promise<Step> => {
  const { settle: settlement, line, ...outcome } = proposal
  if (line === undefined || settlement === undefined || dryRun)
    return { outcome: { ...outcome, ...(line && { line }) }, settledNow: false }
  const ended = await payments.settle(settlement.payment.id, settlement.lineId)
  const settled = afterSettlement(line, settlement, ended)
  return { outcome: settled, settledNow: settled.status === 'matched' }
}

const inBatches = async function* <T>(items: AsyncIterable<T>): AsyncGenerator<readonly T[]> {
  let batch: T[] = []
  for await (const item of items) {
    batch.push(item)
    if (batch.length < BATCH_LINES) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}

/**
 * Yields the outcome of each line in order, then of each deferred payment that is pending and that no line names.
 * Rejects with the signal's reason between two batches.
 */
export const reconcile = async function* (reconciliation: Reconciliation): AsyncGenerator<Step> {
  const { file, payments, signal, onProgress } = reconciliation
  const { total, reversals } = await check(reconciliation)
  const importState: ImportState = { lines: new Map(), occurrences: new Map(), named: new Set(), reversals }
  const limit = pLimit(REQUESTS_AT_ONCE)
  let done = 0
  for await (const batch of inBatches(file.lines())) {
    signal.throwIfAborted()
    const lines = batch.map(line => ({ line, lineId: nextLineId(line, importState) }))
    const named = await limit.map(lines, async line => ({ ...line, payments: await paymentsOf(payments, line) }))
    // In the order of the file, so that of two lines for one payment the first settles it, at each repetition.
    const proposals = named.map(line => outcomeOf(line, importState))
    yield* await limit.map(proposals, proposal => settle(reconciliation, proposal))
    done += batch.length
    onProgress(done, total)
  }
  for await (const payment of payments.pending()) {
    signal.throwIfAborted()
    if (isDeferredAndNotFailed(payment) && !importState.named.has(payment.id))
      yield { outcome: expected(payment), settledNow: false }
  }
}
