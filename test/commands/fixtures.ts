import { invoiceEntity } from '../../src/commands/entities.ts'
import { type Context, handle, type Ledger } from '../../src/commands/commandHandler.ts'
import { derivedId } from '../../src/lib/identifiers.ts'
import { newIdempotencyRecord, idOfKey } from '../../src/commands/idempotency/record.ts'
import type { PersonalReference, NewPayment } from '../../src/commands/payments.ts'
import type { StoredEvent } from '../../src/ports.ts'
import { id } from '../streams/samples.ts'

/** Fixtures for the tests of commands and processes: contexts, payments, and an approved invoice. */

let commands = 0
/** The context of a new request at each call, as the request pipeline creates it. */
export const context = (more: Partial<Context> = {}): Context => {
  commands += 1
  return {
    tenant: 'acme',
    subject: 'clerk',
    client: 'shop',
    authority: 'payments:write',
    correlationId: `correlation-${commands}`,
    at: '2026-01-01T00:00:00.000Z',
    commandId: `command-${commands}`,
    ...more,
  }
}

const scope = { tenant: 'acme', subject: 'clerk', client: 'shop', operation: 'create_payment' }
const secret = Buffer.alloc(32, 1)

/** A reference whose text stands for its token too. */
const referenceOf = (text: string): PersonalReference => ({
  stream: derivedId('ref', 'acme', text),
  store: async () => ({ token: text }),
})

type PaymentDetails = Partial<Omit<NewPayment, 'id' | 'idempotencyRecord' | 'reference'>> & {
  readonly reference?: string
}

/** A payment of the invoice below with its own key, and a wait without a limit. */
export const newPayment = (key: string, { reference, ...more }: PaymentDetails = {}): NewPayment => {
  const terms = {
    invoice_id: id('inv'),
    amount: 1000n,
    currency: 'USD',
    settlement: 'immediate' as const,
    metadata: {},
    ...more,
  }
  const request = { ...terms, amount: Number(terms.amount), reference: reference ?? null }
  return {
    waitMs: 60_000,
    ...terms,
    reference: reference === undefined ? null : referenceOf(reference),
    id: idOfKey('pay', { scope, key, secret }),
    idempotencyRecord: newIdempotencyRecord({ scope, key, secret }, request, '2026-02-01T00:00:00.000Z'),
  }
}

/** An invoice over 25.00 USD, approved. */
export const approveInvoice = async (ledger: Ledger, n = 1): Promise<void> => {
  const raise = {
    type: 'RaiseInvoice' as const,
    order_id: id('ord', n),
    currency: 'USD',
    amount_due: 2500n,
    due_date: '2026-03-01',
    metadata: {},
    claim: null,
  }
  const approve = { type: 'ApproveInvoice' as const, approved_by: 'boss' }
  for (const command of [raise, approve])
    await handle(ledger, invoiceEntity, id('inv', n), { command, context: context() })
}

/** The types of the events of one stream, in order. */
export const typesIn = (log: readonly StoredEvent[], stream: string): string[] =>
  log.filter(event => event.stream === stream).map(({ type }) => type)
