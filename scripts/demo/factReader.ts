import { z } from 'zod'
import type { LedgerClient } from '../client/src/index.ts'
import type { InvoiceRun } from './planExecution.ts'

const factSchema = z.object({
  id: z.string(),
  type: z.string(),
  subject: z.string(),
  data: z.object({
    invoice_id: z.string().optional(),
    amount: z.int().optional(),
    amount_due: z.int().optional(),
    amount_paid: z.int().optional(),
    refund_amount: z.int().optional(),
  }),
})
export type Fact = z.output<typeof factSchema>

const PAGE = 100

export const createFactReader = ({ request }: LedgerClient) => {
  const facts: Fact[] = []
  const ids = new Set<string>()
  let duplicates = 0
  let cursor: string | undefined
  const take = (fact: Fact): void => {
    if (ids.has(fact.id)) duplicates += 1
    else facts.push(fact)
    ids.add(fact.id)
  }
  return {
    /** Distinct facts in the order of their arrival. */
    facts: facts as readonly Fact[],
    /** The number of facts whose id had arrived before. */
    get duplicates() {
      return duplicates
    },
    readToEnd: async (): Promise<void> => {
      for (let hasMore = true; hasMore; ) {
        const { items, page } = (await request('GET /events', { query: { limit: PAGE, cursor } })).data
        for (const fact of items) take(factSchema.parse(fact))
        cursor = page.next_cursor
        hasMore = page.has_more
      }
    },
  }
}
export type FactReader = ReturnType<typeof createFactReader>

const nameOf = (type: string, subject: string): string => `${type} of ${subject}`

const announcedBy = ({ planned, orderId, invoiceId, paymentIds }: InvoiceRun): string[] => {
  const paid = planned.payments.reduce((sum, { amount }) => sum + amount, 0n)
  return [
    nameOf('order.created', orderId),
    nameOf('invoice.approved', invoiceId),
    ...paymentIds.map(id => nameOf('payment.succeeded', id)),
    ...(planned.refund > 0n ? [nameOf('payment.refunded', paymentIds[0] ?? '')] : []),
    ...(paid === planned.total ? [nameOf('invoice.paid', invoiceId)] : []),
  ]
}

/** The facts that the runs must have caused and that have not arrived yet, such as `invoice.paid of inv_…`. */
export const missingFacts = (runs: readonly InvoiceRun[], facts: readonly Fact[]): readonly string[] => {
  const arrived = new Set(facts.map(({ type, subject }) => nameOf(type, subject)))
  return runs.flatMap(announcedBy).filter(name => !arrived.has(name))
}
