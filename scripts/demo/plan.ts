import { z } from 'zod'
import { minorUnitsOf } from './money.ts'

/** The plan of orders and payments: a pure function of the sample data, so that every run sends the same requests. */

export const CURRENCY = 'USD'

const decimal = z.string()
export const sourceSchema = z
  .array(
    z.object({
      invoice: z.int().min(1),
      date: z.iso.date(),
      customer: z.int().min(1),
      company: z.string().nullable(),
      country: z.string(),
      total: decimal,
      lines: z
        .array(z.object({ sku: z.string(), description: z.string(), quantity: z.int(), unit_price: decimal }))
        .min(1),
    }),
  )
  .min(1)
export type SourceInvoice = z.output<typeof sourceSchema>[number]

/** `at_once` sends the same request twice concurrently; `later` repeats it after all others. */
export type Retry = 'none' | 'at_once' | 'later'

export type PlannedPayment = {
  /** The Idempotency-Key. */
  readonly key: string
  readonly reference: string
  /** Minor units. */
  readonly amount: bigint
  readonly retry: Retry
}

export type PlannedInvoice = {
  /** `chinook-17`: the prefix of every key and reference of the invoice. */
  readonly name: string
  readonly order: {
    readonly customer_reference: string
    readonly description: string
    readonly currency: typeof CURRENCY
    readonly lines: readonly { sku: string; description: string; quantity: number; unit_amount: number }[]
    readonly metadata: Readonly<Record<string, string>>
  }
  /** Minor units. */
  readonly total: bigint
  readonly payments: readonly PlannedPayment[]
  /** Minor units refunded of the first payment; zero for most invoices. */
  readonly refund: bigint
}

const KINDS_OF_PAYERS = 20
const IN_TWO_PARTS: ReadonlySet<number> = new Set([2, 11, 16])

/** Of twenty invoices one stays unpaid, one is half paid, three are paid in two parts, the others in one payment. */
const partsOf = (invoice: number, total: bigint): readonly bigint[] => {
  const payer = invoice % KINDS_OF_PAYERS
  const half = total / 2n
  if (payer === 7) return []
  if (payer === 13) return [half]
  return IN_TWO_PARTS.has(payer) ? [half, total - half] : [total]
}

/** Of twenty invoices one is refunded in full and one by half. */
const refundOf = (invoice: number, total: bigint): bigint => {
  const payer = invoice % KINDS_OF_PAYERS
  if (payer === 4) return total
  return payer === 9 ? total / 2n : 0n
}

const RETRY_EVERY = 10

const retryOf = (index: number): Retry => {
  if (index % RETRY_EVERY === 0) return 'at_once'
  return index % RETRY_EVERY === RETRY_EVERY / 2 ? 'later' : 'none'
}

const orderOf = ({ invoice, date, customer, company, country, lines }: SourceInvoice): PlannedInvoice['order'] => ({
  customer_reference: `customer-${customer}`,
  description: `Chinook invoice ${invoice} of ${date}`,
  currency: CURRENCY,
  lines: lines.map(({ sku, description, quantity, unit_price }) => ({
    sku,
    description,
    quantity,
    unit_amount: Number(minorUnitsOf(unit_price, CURRENCY)),
  })),
  metadata: { country, ...(company === null ? {} : { company }) },
})

const totalOf = (source: SourceInvoice): bigint => {
  const total = minorUnitsOf(source.total, CURRENCY)
  const lines = source.lines.map(line => BigInt(line.quantity) * minorUnitsOf(line.unit_price, CURRENCY))
  if (lines.reduce((sum, amount) => sum + amount, 0n) !== total)
    throw new RangeError(`The lines of invoice ${source.invoice} do not add up to its total.`)
  return total
}

/** Deterministic: a second run sends the same keys and requests as the first. */
export const planOf = (sources: readonly SourceInvoice[]): readonly PlannedInvoice[] => {
  let payments = 0
  return sources.map(source => {
    const name = `chinook-${source.invoice}`
    const total = totalOf(source)
    const parts = partsOf(source.invoice, total)
    const suffixOf = (index: number): string => (parts.length > 1 ? `-${index + 1}` : '')
    return {
      name,
      order: orderOf(source),
      total,
      payments: parts.map((amount, index) => ({
        key: `${name}-payment${suffixOf(index)}`,
        reference: `${name}${suffixOf(index)}`,
        amount,
        retry: retryOf(payments++),
      })),
      refund: refundOf(source.invoice, total),
    }
  })
}

/** Lists are read in the longest pages. */
export const WHOLE_PAGES = { query: { limit: 100 } } as const

/** Counts and amounts in minor units: as planned, by the lists, or by the facts. */
export type Sums = {
  readonly orders: number
  readonly invoices: number
  readonly payments: number
  /** Invoices that are paid in full. */
  readonly settled: number
  readonly refunds: number
  readonly invoiced: bigint
  readonly paid: bigint
  readonly open: bigint
  readonly refunded: bigint
}

const paidOf = ({ payments }: PlannedInvoice): bigint => payments.reduce((sum, { amount }) => sum + amount, 0n)

export const sumsOf = (plan: readonly PlannedInvoice[]): Sums => {
  const invoiced = plan.reduce((sum, { total }) => sum + total, 0n)
  const paid = plan.reduce((sum, planned) => sum + paidOf(planned), 0n)
  return {
    orders: plan.length,
    invoices: plan.length,
    payments: plan.reduce((count, { payments }) => count + payments.length, 0),
    refunds: plan.filter(({ refund }) => refund > 0n).length,
    settled: plan.filter(planned => paidOf(planned) === planned.total).length,
    invoiced,
    paid,
    open: invoiced - paid,
    refunded: plan.reduce((sum, { refund }) => sum + refund, 0n),
  }
}
