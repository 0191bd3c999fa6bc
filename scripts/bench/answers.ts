import type { Client } from 'pg'
import { projections, journals } from '../../projections/index.ts'

/** Exactly the payments that were answered 201 must exist, once each, and the sums of their invoices must be right. */

export type SentPayment = { readonly invoice_id: string; readonly amount: number; readonly reference: string | null }
/** A payment that was answered 201, with the id of the answer and the members of the request. */
export type AnsweredPayment = SentPayment & { readonly id: string }

type StoredPayment = AnsweredPayment & { readonly state: string }
type StoredInvoice = {
  readonly id: string
  readonly amount_due: number
  readonly amount_paid: number
  readonly amount_pending: number
}
export type ReadModelContent = {
  readonly payments: readonly StoredPayment[]
  readonly invoices: readonly StoredInvoice[]
  readonly successes: ReadonlyMap<string, number>
}

export class WrongAnswers extends Error {
  static readonly #SHOWN_MAX = 10
  constructor(differences: readonly string[]) {
    const shown = differences.slice(0, WrongAnswers.#SHOWN_MAX).map(difference => `\n  ${difference}`)
    super(`The service answered wrongly, so nothing is reported. ${differences.length} differences:${shown.join('')}`)
    this.name = 'WrongAnswers'
  }
}

const paymentDifferences = (
  answered: AnsweredPayment,
  actual: StoredPayment | undefined,
  successes: number,
): string[] => {
  const { id } = answered
  if (actual === undefined) return [`${id} was answered 201 and does not exist.`]
  const changed = (['invoice_id', 'amount', 'reference'] as const).filter(member => actual[member] !== answered[member])
  return [
    ...changed.map(member => `${id} was sent with ${member} ${answered[member]} and has ${actual[member]}.`),
    ...(actual.state === 'succeeded' ? [] : [`${id} was answered 201 and is ${actual.state}.`]),
    ...(successes === 1 ? [] : [`${id} has ${successes} facts of its success.`]),
  ]
}

const invoiceDifferences = ({ id, amount_due, amount_paid, amount_pending }: StoredInvoice, paid: number): string[] => [
  ...(amount_paid === paid ? [] : [`${id} has ${amount_paid} paid, and ${paid} were answered.`]),
  ...(amount_pending === 0 ? [] : [`${id} has ${amount_pending} pending.`]),
  ...(amount_paid + amount_pending <= amount_due ? [] : [`${id} is over-paid: ${amount_paid} of ${amount_due}.`]),
]

/** Every difference in words; none if exactly the answered payments exist. */
export const differencesBetween = (answered: readonly AnsweredPayment[], actual: ReadModelContent): string[] => {
  const byId = new Map(actual.payments.map(payment => [payment.id, payment]))
  const ids = new Set(answered.map(({ id }) => id))
  const repeated = [...Map.groupBy(answered, ({ id }) => id)].filter(([, same]) => same.length > 1)
  const paid = new Map<string, number>()
  for (const { invoice_id, amount } of answered) paid.set(invoice_id, (paid.get(invoice_id) ?? 0) + amount)
  const invoices = new Set(actual.invoices.map(({ id }) => id))
  return [
    ...repeated.map(([id, same]) => `${id} was the answer to ${same.length} requests with different keys.`),
    ...answered.flatMap(payment =>
      paymentDifferences(payment, byId.get(payment.id), actual.successes.get(payment.id) ?? 0),
    ),
    ...actual.payments.filter(({ id }) => !ids.has(id)).map(({ id }) => `${id} exists and was not answered 201.`),
    ...[...paid.keys()].filter(id => !invoices.has(id)).map(id => `${id} was paid and does not exist.`),
    ...actual.invoices.flatMap(invoice => invoiceDifferences(invoice, paid.get(invoice.id) ?? 0)),
  ]
}

const QUERIES = {
  payments: `select id, invoice_id, amount::float8 as amount, state,
                    coalesce((select text from personal_texts where token = reference), reference) as reference
               from ${projections.payments.name} where tenant_id = $1`,
  invoices: `select id, amount_due::float8 as amount_due, amount_paid::float8 as amount_paid,
                    amount_pending::float8 as amount_pending
               from ${projections.invoices.name} where tenant_id = $1`,
  successes: `select subject, count(*)::int as count from ${journals.facts.name}
               where tenant_id = $1 and type = 'payment.succeeded' group by subject`,
} as const

const readModelContent = async (client: Client, tenant: string): Promise<ReadModelContent> => {
  const payments = await client.query<StoredPayment>(QUERIES.payments, [tenant])
  const invoices = await client.query<StoredInvoice>(QUERIES.invoices, [tenant])
  const successes = await client.query<{ subject: string; count: number }>(QUERIES.successes, [tenant])
  return {
    payments: payments.rows,
    invoices: invoices.rows,
    successes: new Map(successes.rows.map(({ subject, count }) => [subject, count])),
  }
}

/** All payments of a tenant that were answered 201. Bodies are parsed after the measurement. */
export const createAnswers = () => {
  const parsed: AnsweredPayment[] = []
  const unparsed: { readonly sent: SentPayment; readonly body: string }[] = []
  return {
    record: (sent: SentPayment, body: string): void => void unparsed.push({ sent, body }),
    all: (): readonly AnsweredPayment[] => {
      for (const { sent, body } of unparsed.splice(0))
        parsed.push({ ...sent, id: (JSON.parse(body) as { id: string }).id })
      return parsed
    },
  }
}
export type Answers = ReturnType<typeof createAnswers>

/** Throws WrongAnswers unless exactly the answered payments of the tenant exist. The feeds must have caught up. */
export const checkAnswers = async (client: Client, tenant: string, answers: Answers): Promise<void> => {
  const differences = differencesBetween(answers.all(), await readModelContent(client, tenant))
  if (differences.length > 0) throw new WrongAnswers(differences)
}
