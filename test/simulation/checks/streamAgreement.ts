import { partsOf } from '../../../streams/aggregate.ts'
import type { InvoiceState } from '../../../streams/invoice/index.ts'
import type { OrderState } from '../../../streams/order/index.ts'
import type { PaymentState } from '../../../streams/payment/index.ts'
import type { SimulatedLog } from '../eventStore.ts'
import { stateOf } from './folding.ts'
import { violation, type Violation } from './violation.ts'

/** The streams compared with each other once all work is completed: aggregates that refer to each other must agree. */

type Folded = {
  readonly id: string
  readonly category: string
  readonly state: unknown
  readonly types: readonly string[]
}

/** The streams that this build can read, each folded by the decider of its aggregate. */
const foldAll = (log: SimulatedLog): readonly Folded[] => {
  const names = new Set(log.events.map(({ stream }) => stream))
  return [...names].flatMap(name => {
    const { category, id } = partsOf(name)
    const state = stateOf(log, name)
    return state === undefined ? [] : [{ id, category, state, types: log.stream(name).map(({ type }) => type) }]
  })
}

type FoldedAggregates = {
  readonly orders: ReadonlyMap<string, OrderState>
  readonly invoices: ReadonlyMap<string, InvoiceState>
  readonly payments: ReadonlyMap<string, PaymentState>
  readonly all: readonly Folded[]
}

const foldedAggregatesOf = (log: SimulatedLog): FoldedAggregates => {
  const all = foldAll(log)
  const statesOf = <S>(category: string): ReadonlyMap<string, S> =>
    new Map(all.filter(one => one.category === category).map(({ id, state }) => [id, state as S]))
  return { orders: statesOf('order'), invoices: statesOf('invoice'), payments: statesOf('payment'), all }
}

/** By the state of a payment, the states that its allocation on the invoice may have. */
const ALLOCATION_STATUSES: Readonly<Record<string, readonly (string | undefined)[]>> = {
  accepted: ['reserved'],
  succeeded: ['applied'],
  failed: [undefined, 'refused', 'released'],
  refused: [undefined, 'refused'],
}

const paymentsAgree = ({ payments, invoices }: FoldedAggregates): Violation[] =>
  [...payments].flatMap(([id, payment]) => {
    if (payment.status === 'none') return []
    const invoice = invoices.get(payment.terms.invoice_id)
    const allocation = invoice && invoice.status !== 'none' ? invoice.payments.get(id as never)?.status : undefined
    if (payment.status === 'initiated') return [violation('interrupted work is completed', `${id} has no outcome`)]
    if (ALLOCATION_STATUSES[payment.status]?.includes(allocation)) return []
    return [
      violation(
        'a payment and its invoice agree',
        `${id} is ${payment.status}, its allocation on the invoice ${allocation}`,
      ),
    ]
  })

const amountsAgree = ({ invoices, payments }: FoldedAggregates): Violation[] => {
  const byInvoice = Map.groupBy(payments.values(), one => (one.status === 'none' ? undefined : one.terms.invoice_id))
  return [...invoices].flatMap(([id, invoice]) => {
    if (invoice.status === 'none') return []
    const { due, paid, pending } = invoice
    const own = byInvoice.get(id as never) ?? []
    const sum = (status: PaymentState['status']): bigint =>
      own.reduce((total, one) => (one.status === status && 'terms' in one ? total + one.terms.amount : total), 0n)
    const violations: Violation[] = []
    if (paid + pending > due)
      violations.push(violation('payments never exceed what is due', `${id}: ${paid} + ${pending} of ${due}`))
    if (paid !== sum('succeeded'))
      violations.push(
        violation('an invoice is paid by its payments', `${id}: paid ${paid}, the payments ${sum('succeeded')}`),
      )
    if (pending !== sum('accepted'))
      violations.push(
        violation(
          'an invoice reserves its pending payments',
          `${id}: pending ${pending}, the payments ${sum('accepted')}`,
        ),
      )
    return violations
  })
}

const refundsAgree = ({ all, payments, invoices }: FoldedAggregates): Violation[] => {
  const succeeded = [...payments.values()].filter(one => one.status === 'succeeded')
  return all
    .filter(({ category }) => category === 'refund')
    .flatMap(({ id, state }) => {
      const payment = succeeded.find(({ refunds }) => refunds.has(id as never))
      if (payment === undefined)
        return [violation('interrupted work is completed', `${id} has no outcome: ${JSON.stringify(state, textOf)}`)]
      const granted = payment.refunds.get(id as never)
      const invoice = invoices.get(payment.terms.invoice_id)
      const isApplied = invoice !== undefined && invoice.status !== 'none' && invoice.refunds.has(id as never)
      if ((typeof granted === 'bigint') === isApplied) return []
      return [violation('a refund and its invoice agree', `${id}: granted ${granted}, applied ${isApplied}`)]
    })
}

const textOf = (_: string, value: unknown): unknown => (typeof value === 'bigint' ? String(value) : value)

const refundsNeverExceed = ({ payments }: FoldedAggregates): Violation[] =>
  [...payments].flatMap(([id, payment]) =>
    payment.status === 'succeeded' && payment.refunded > payment.terms.amount
      ? [violation('a refund never exceeds what was paid', `${id}: ${payment.refunded} of ${payment.terms.amount}`)]
      : [],
  )

const ordersAgree = ({ orders, invoices }: FoldedAggregates): Violation[] =>
  [...orders].flatMap(([id, order]) => {
    if (order.status !== 'invoiced' && order.status !== 'completed') return []
    const invoice = invoices.get(order.invoice.invoice_id)
    if (invoice === undefined || invoice.status === 'none')
      return [
        violation(
          'interrupted work is completed',
          `${id} has the invoice ${order.invoice.invoice_id}, which does not exist`,
        ),
      ]
    if (invoice.orderId !== id)
      return [violation('an order has its own invoice', `${id} has an invoice of ${invoice.orderId}`)]
    const isPaid = invoice.status === 'paid'
    if (invoice.status === 'voided') return [violation('interrupted work is completed', `${id} has a voided invoice`)]
    return isPaid === (order.status === 'completed')
      ? []
      : [violation('interrupted work is completed', `${id} is ${order.status}, its invoice ${invoice.status}`)]
  })

const invoicesHaveOrders = ({ orders, invoices }: FoldedAggregates): Violation[] =>
  [...invoices].flatMap(([id, invoice]) => {
    if (invoice.status === 'none' || invoice.status === 'voided') return []
    const order = orders.get(invoice.orderId)
    return order !== undefined && 'invoice' in order && order.invoice.invoice_id === id
      ? []
      : [violation('an invoice belongs to its order', `${id} names ${invoice.orderId}, which is ${order?.status}`)]
  })

/** At most one accepted or succeeded payment has a given business reference. */
const referencesAreUnique = ({ payments }: FoldedAggregates, log: SimulatedLog): Violation[] => {
  const live = [...payments].flatMap(([id, payment]) => {
    const reference = payment.status === 'accepted' || payment.status === 'succeeded' ? payment.terms.reference : null
    const tenant = log.stream(`payment-${id}`)[0]?.metadata['tenant']
    return reference === null ? [] : [{ id, scope: JSON.stringify([tenant, reference]) }]
  })
  return [...Map.groupBy(live, ({ scope }) => scope)].flatMap(([scope, all]) =>
    all.length > 1 ? [violation('one payment per reference', `${scope}: ${all.map(({ id }) => id).join()}`)] : [],
  )
}

const ENDED: ReadonlySet<string> = new Set([
  'ExportCompleted',
  'OperationFailed',
  'OperationCancelled',
  'OperationExpired',
])
const operationsEnd = ({ all }: FoldedAggregates): Violation[] =>
  all
    .filter(({ category, types }) => category === 'operation' && !types.some(type => ENDED.has(type)))
    .map(({ id, types }) => violation('interrupted work is completed', `${id}: ${types.join()}`))

/** The reference of a refused payment is released. */
const referencesAreReleased = ({ all, payments }: FoldedAggregates): Violation[] =>
  all
    .filter(({ category }) => category === 'reference')
    .flatMap(({ id, state }) => {
      const holder = (state as { holder?: string }).holder
      const payment = holder === undefined ? undefined : payments.get(holder)
      return payment?.status === 'refused'
        ? [violation('a refused payment holds no reference', `${id} is held by ${holder}`)]
        : []
    })

export const checkStreamAgreement = (log: SimulatedLog): Violation[] => {
  const folded = foldedAggregatesOf(log)
  return [
    ...paymentsAgree(folded),
    ...amountsAgree(folded),
    ...refundsAgree(folded),
    ...refundsNeverExceed(folded),
    ...ordersAgree(folded),
    ...invoicesHaveOrders(folded),
    ...referencesAreUnique(folded, log),
    ...referencesAreReleased(folded),
    ...operationsEnd(folded),
  ]
}
