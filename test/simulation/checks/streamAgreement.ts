import { partsOf } from '../../../streams/aggregate.ts'
import type { InvoiceState } from '../../../streams/invoice/index.ts'
import type { OrderState } from '../../../streams/order/index.ts'
import type { PaymentState } from '../../../streams/payment/index.ts'
import type { SimulatedLog } from '../eventStore.ts'
import { stateOf } from './folding.ts'
import { violation, type Violation } from './violation.ts'

/** The streams held against each other once everything is finished: what one says, the others must agree with. */

type Folded = {
  readonly id: string
  readonly category: string
  readonly state: unknown
  readonly types: readonly string[]
}

/** Every stream that this build can read, folded by its own decider. */
export const foldAll = (log: SimulatedLog): readonly Folded[] => {
  const names = new Set(log.events.map(({ stream }) => stream))
  return [...names].flatMap(name => {
    const { category, id } = partsOf(name)
    const state = stateOf(log, name)
    return state === undefined ? [] : [{ id, category, state, types: log.stream(name).map(({ type }) => type) }]
  })
}

type Books = {
  readonly orders: ReadonlyMap<string, OrderState>
  readonly invoices: ReadonlyMap<string, InvoiceState>
  readonly payments: ReadonlyMap<string, PaymentState>
  readonly all: readonly Folded[]
}

const booksOf = (log: SimulatedLog): Books => {
  const all = foldAll(log)
  const statesOf = <S>(category: string): ReadonlyMap<string, S> =>
    new Map(all.filter(one => one.category === category).map(({ id, state }) => [id, state as S]))
  return { orders: statesOf('order'), invoices: statesOf('invoice'), payments: statesOf('payment'), all }
}

/** The states that an invoice may have for a payment, by the state of the payment. */
const PART_OF: Readonly<Record<string, readonly (string | undefined)[]>> = {
  accepted: ['reserved'],
  succeeded: ['applied'],
  failed: [undefined, 'refused', 'released'],
  refused: [undefined, 'refused'],
}

const paymentsAgree = ({ payments, invoices }: Books): Violation[] =>
  [...payments].flatMap(([id, payment]) => {
    if (payment.status === 'none') return []
    const invoice = invoices.get(payment.terms.invoice_id)
    const part = invoice && invoice.status !== 'none' ? invoice.payments.get(id as never)?.status : undefined
    if (payment.status === 'initiated') return [violation('what was begun is finished', `${id} has no outcome`)]
    if (PART_OF[payment.status]?.includes(part)) return []
    return [violation('a payment and its invoice agree', `${id} is ${payment.status}, the invoice says ${part}`)]
  })

const dueIsNeverExceeded = ({ invoices, payments }: Books): Violation[] => {
  const byInvoice = Map.groupBy(payments.values(), one => (one.status === 'none' ? undefined : one.terms.invoice_id))
  return [...invoices].flatMap(([id, invoice]) => {
    if (invoice.status === 'none') return []
    const { due, paid, pending } = invoice
    const own = byInvoice.get(id as never) ?? []
    const sum = (status: PaymentState['status']): bigint =>
      own.reduce((total, one) => (one.status === status && 'terms' in one ? total + one.terms.amount : total), 0n)
    const found: Violation[] = []
    if (paid + pending > due)
      found.push(violation('payments never exceed what is due', `${id}: ${paid} + ${pending} of ${due}`))
    if (paid !== sum('succeeded'))
      found.push(violation('an invoice is paid by its payments', `${id} says ${paid}, they ${sum('succeeded')}`))
    if (pending !== sum('accepted'))
      found.push(violation('an invoice waits for its payments', `${id} says ${pending}, they ${sum('accepted')}`))
    return found
  })
}

const refundsAgree = ({ all, payments, invoices }: Books): Violation[] => {
  const succeeded = [...payments.values()].filter(one => one.status === 'succeeded')
  return all
    .filter(({ category }) => category === 'refund')
    .flatMap(({ id, state }) => {
      const payment = succeeded.find(({ refunds }) => refunds.has(id as never))
      if (payment === undefined)
        return [violation('what was begun is finished', `${id} has no outcome: ${JSON.stringify(state, textOf)}`)]
      const granted = payment.refunds.get(id as never)
      const invoice = invoices.get(payment.terms.invoice_id)
      const isApplied = invoice !== undefined && invoice.status !== 'none' && invoice.refunds.has(id as never)
      if ((typeof granted === 'bigint') === isApplied) return []
      return [violation('a refund and its invoice agree', `${id}: granted ${granted}, applied ${isApplied}`)]
    })
}

const textOf = (_: string, value: unknown): unknown => (typeof value === 'bigint' ? String(value) : value)

const refundsNeverExceed = ({ payments }: Books): Violation[] =>
  [...payments].flatMap(([id, payment]) =>
    payment.status === 'succeeded' && payment.refunded > payment.terms.amount
      ? [violation('a refund never exceeds what was paid', `${id}: ${payment.refunded} of ${payment.terms.amount}`)]
      : [],
  )

const ordersAgree = ({ orders, invoices }: Books): Violation[] =>
  [...orders].flatMap(([id, order]) => {
    if (order.status !== 'invoiced' && order.status !== 'completed') return []
    const invoice = invoices.get(order.invoice.invoice_id)
    if (invoice === undefined || invoice.status === 'none')
      return [
        violation('what was begun is finished', `${id} waits for ${order.invoice.invoice_id}, which is not there`),
      ]
    if (invoice.orderId !== id)
      return [violation('an order has its own invoice', `${id} has that of ${invoice.orderId}`)]
    const isPaid = invoice.status === 'paid'
    if (invoice.status === 'voided')
      return [violation('what was begun is finished', `${id} waits for a voided invoice`)]
    return isPaid === (order.status === 'completed')
      ? []
      : [violation('what was begun is finished', `${id} is ${order.status}, its invoice ${invoice.status}`)]
  })

const invoicesHaveOrders = ({ orders, invoices }: Books): Violation[] =>
  [...invoices].flatMap(([id, invoice]) => {
    if (invoice.status === 'none' || invoice.status === 'voided') return []
    const order = orders.get(invoice.orderId)
    return order !== undefined && 'invoice' in order && order.invoice.invoice_id === id
      ? []
      : [violation('an invoice is that of its order', `${id} names ${invoice.orderId}, which is ${order?.status}`)]
  })

/** One payment that is alive for each business reference. */
const referencesAreUnique = ({ payments }: Books, log: SimulatedLog): Violation[] => {
  const alive = [...payments].flatMap(([id, payment]) => {
    const reference = payment.status === 'accepted' || payment.status === 'succeeded' ? payment.terms.reference : null
    const tenant = log.stream(`payment-${id}`)[0]?.metadata['tenant']
    return reference === null ? [] : [{ id, scope: JSON.stringify([tenant, reference]) }]
  })
  return [...Map.groupBy(alive, ({ scope }) => scope)].flatMap(([scope, all]) =>
    all.length > 1 ? [violation('one payment per reference', `${scope}: ${all.map(({ id }) => id).join()}`)] : [],
  )
}

const ENDED: ReadonlySet<string> = new Set([
  'ExportCompleted',
  'OperationFailed',
  'OperationCancelled',
  'OperationExpired',
])
const operationsEnd = ({ all }: Books): Violation[] =>
  all
    .filter(({ category, types }) => category === 'operation' && !types.some(type => ENDED.has(type)))
    .map(({ id, types }) => violation('what was begun is finished', `${id}: ${types.join()}`))

/** A reference that is taken is that of a payment which lives. */
const referencesAreReleased = ({ all, payments }: Books): Violation[] =>
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
  const books = booksOf(log)
  return [
    ...paymentsAgree(books),
    ...dueIsNeverExceeded(books),
    ...refundsAgree(books),
    ...refundsNeverExceed(books),
    ...ordersAgree(books),
    ...invoicesHaveOrders(books),
    ...referencesAreUnique(books, log),
    ...referencesAreReleased(books),
    ...operationsEnd(books),
  ]
}
