import fc from 'fast-check'
import { entriesOf } from '../../projections/bookEntries.ts'
import { closingsOf } from '../../projections/closings.ts'
import { BOOKS_CATEGORIES, type BooksRows, rowsOfEntries } from '../../projections/books/projection.ts'
import { partsOf } from '../../streams/aggregate.ts'
import type { AnyEvent } from '../../streams/decider.ts'
import type { Recorded } from '../../streams/envelope.ts'
import { accountCode } from '../../src/feeds/accountCodes.ts'
import { type Context, handle, type Ledger } from '../../src/commands/commandHandler.ts'
import { invoiceEntity, orderEntity, periodEntity } from '../../src/commands/entities.ts'
import { idOfKey, newIdempotencyRecord } from '../../src/commands/idempotency/record.ts'
import { raise } from '../../src/commands/invoices.ts'
import { pay } from '../../src/commands/payments.ts'
import { refund } from '../../src/commands/refunds.ts'
import { settle } from '../../src/commands/settlements.ts'
import { decode } from '../../src/feeds/decode.ts'
import type { StoredEvent } from '../../src/ports.ts'
import { context, newPayment } from '../commands/fixtures.ts'
import { createTestLedger } from '../feeds/fixtures.ts'
import { createOrder, id } from '../streams/samples.ts'
import { createMemoryLog, type MemoryLog } from '../support/memoryStore.ts'

/** Random histories of orders, invoices, payments and refunds, made by the commands of the service, with races and replays. */

const ORDERS = 3
const KEYS = 4
/** Clocks of several machines differ by up to this, some ahead of the store's. */
const CLOCK_SKEW_MS = 5_000
const BEGIN_MS = Date.parse('2026-01-01T00:00:00.000Z')

export type Step = {
  readonly kind: 'invoice' | 'approve' | 'void' | 'pay' | 'defer' | 'settle' | 'fail' | 'refund' | 'rename' | 'close'
  /** The order, and its invoice. */
  readonly order: number
  /** The number of the idempotency key: equal keys are replays. */
  readonly key: number
  readonly amount: bigint
  readonly skewMs: number
}

const anyStep: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom(
    'invoice',
    'approve',
    'void',
    'pay',
    'defer',
    'settle',
    'fail',
    'refund',
    'refund',
    'rename',
    'close',
  ),
  order: fc.integer({ min: 1, max: ORDERS }),
  key: fc.integer({ min: 1, max: KEYS }),
  amount: fc.constantFrom(1n, 400n, 1250n, 2500n),
  skewMs: fc.integer({ min: -CLOCK_SKEW_MS, max: CLOCK_SKEW_MS }),
})

/** Each group is sent at once: its commands race. The orders are invoiced and approved first, so that most steps have an effect. */
export const anyMoneySteps: fc.Arbitrary<readonly (readonly Step[])[]> = fc
  .array(fc.array(anyStep, { minLength: 1, maxLength: 3 }), { maxLength: 25 })
  .map(groups => [...BEGINNING, ...groups])

/** Every order is invoiced, and every invoice approved. */
export const BEGINNING: readonly (readonly Step[])[] = Array.from({ length: ORDERS }, (_, n) => n + 1).flatMap(order =>
  (['invoice', 'approve'] as const).map(kind => [{ kind, order, key: 1, amount: 1n, skewMs: 0 }]),
)

const CURRENCIES: readonly string[] = ['USD', 'JPY', 'USD']
const currencyOf = (order: number): string => CURRENCIES[order - 1] ?? 'USD'

const paymentOf = ({ order, key, amount }: Step, settlement: 'immediate' | 'deferred') =>
  newPayment(`${order}/${key}`, { invoice_id: id('inv', order), amount, settlement, currency: currencyOf(order) })

/** The end of the period is after all times of the history, so that later entries are dated after it. */
const close = ({ order, key }: Step, position: bigint) => {
  const complete_to = position - BigInt(order)
  return { type: 'ClosePeriod' as const, through: `2026-01-0${key}`, complete_to, reason: 'the month is over' }
}

const run = async (ledger: Ledger, step: Step, by: Context): Promise<unknown> => {
  const { kind, order, key, amount } = step
  const [orderId, invoiceId] = [id('ord', order), id('inv', order)]
  switch (kind) {
    case 'invoice': {
      const terms = { due_date: '2026-03-01', metadata: {}, idempotencyRecord: null }
      return raise(ledger, { id: invoiceId, order_id: orderId, ...terms }, by)
    }
    case 'approve':
      return handle(ledger, invoiceEntity, invoiceId, {
        command: { type: 'ApproveInvoice', approved_by: 'boss' },
        context: by,
      })
    case 'void':
      return handle(ledger, invoiceEntity, invoiceId, { command: { type: 'VoidInvoice', reason: null }, context: by })
    case 'pay':
      return pay(ledger, paymentOf(step, 'immediate'), by)
    case 'defer':
      return pay(ledger, paymentOf(step, 'deferred'), by)
    case 'settle':
      return settle(ledger, paymentOf(step, 'deferred').id, { type: 'SettlePayment' }, by)
    case 'fail':
      return settle(ledger, paymentOf(step, 'deferred').id, { type: 'FailPayment', code: 'bounced' }, by)
    case 'close': {
      const command = close(step, await ledger.store.head())
      return handle(ledger, periodEntity, id('per'), { command, context: by })
    }
    case 'rename': {
      const command = { type: 'ChangeOrder' as const, customer_reference: key === 1 ? null : `C ${key}/ü` }
      return handle(ledger, orderEntity, orderId, { command, context: by })
    }
    case 'refund': {
      const scope = { tenant: 'acme', subject: 'clerk', client: 'shop', operation: 'refund_payment' }
      const scoped = { scope, key: `${order}/${key}/${amount}`, secret: Buffer.alloc(32, 1) }
      const payment_id = paymentOf(step, 'immediate').id
      const request = { payment_id, amount: Number(amount) }
      const idempotencyRecord = newIdempotencyRecord(scoped, request, '2026-02-01T00:00:00.000Z')
      return refund(ledger, { id: idOfKey('rfd', scoped), payment_id, amount, reason: 'broken', idempotencyRecord }, by)
    }
  }
}

/** The log that the steps lead to. The clock of the store passes one second with each group. */
export const logOf = async (groups: readonly (readonly Step[])[]): Promise<MemoryLog> => {
  let nowMs = BEGIN_MS
  const log = createMemoryLog(() => nowMs)
  const ledger = createTestLedger(log)
  for (let order = 1; order <= ORDERS; order += 1)
    await handle(ledger, orderEntity, id('ord', order), {
      command: { ...createOrder, currency: currencyOf(order), customer_reference: order === 2 ? null : `C-${order}` },
      context: context({ at: new Date(nowMs).toISOString() }),
      load: 'assume_empty',
    })
  for (const group of groups) {
    nowMs += 1_000
    await Promise.all(
      group.map(step => run(ledger, step, context({ at: new Date(nowMs + step.skewMs).toISOString() }))),
    )
  }
  return log
}

/** The events that the books are made from. */
export const bookedEvents = (events: readonly StoredEvent[]): Recorded<AnyEvent>[] =>
  events
    .filter(({ stream }) => BOOKS_CATEGORIES.includes(partsOf(stream).category))
    .map(stored => decode(stored).recorded)

/** The books as one fold of the events, without tables. */
export const foldedBooks = (events: readonly Recorded<AnyEvent>[]): BooksRows => {
  const { entries } = entriesOf(events, { customers: new Map(), entries: new Map(), accountCode })
  return rowsOfEntries(entries, { times: new Map(), sums: new Map(), closings: closingsOf(events) })
}
