import pLimit from 'p-limit'
import { isDeferredAndNotFailed, type LedgerPayments, type Payment } from './ledgerPayments.ts'
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

/** The progress is in the ledger alone: settlements have the ids of lines, so the same command continues. */

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

/** Reads the whole file before anything is changed. Throws a StatementError for a file that cannot be used. */
const check = async ({ file, signal }: Reconciliation) => {
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

const NAME_CHARS_MAX = 500
const WORD_CHARS_MIN = 4
const NAMES_MAX = 20

const isName = (text: string): boolean => text.length > 0 && text.length <= NAME_CHARS_MAX && !text.includes('\u0000')

const unique = (names: readonly string[]): readonly string[] => [...new Set(names)].filter(isName).slice(0, NAMES_MAX)

/** Words with a digit, whole, and in the parts between + and /, with which banks mark fields: EREF+…, /ROC/… */
const wordsOf = (text: string): readonly string[] =>
  text
    .split(/[\s,;:()[\]"']+/)
    .flatMap(word => [word, ...word.split(/[+/]/)])
    .map(word => word.replace(/[.!?]+$/, ''))
    .filter(word => word.length >= WORD_CHARS_MIN && /\d/.test(word))

/** The references of the line, the strongest first. */
export const referencesIn = ({ references }: StatementLine): readonly string[] => unique(references)

/** The names that its free texts may contain: each whole text, then its words. */
export const namesInTexts = ({ texts }: StatementLine): readonly string[] =>
  unique([...texts, ...texts.flatMap(wordsOf)])

const uniqueById = <P extends Payment>(payments: readonly P[]): readonly P[] => [
  ...new Map(payments.map(payment => [payment.id, payment])).values(),
]

const findNamed = async (payments: LedgerPayments, line: StatementLine, names: readonly string[]) => {
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

/** Yields the outcome of each line in order, then of each pending deferred payment that no line names. */
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
