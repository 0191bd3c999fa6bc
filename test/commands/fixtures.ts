import { invoiceEntity } from '../../src/commands/entities.ts'
import { type Context, handle, type Ledger } from '../../src/commands/commandHandler.ts'
import { newIdempotencyRecord, idOfKey } from '../../src/commands/idempotency/record.ts'
import type { NewPayment } from '../../src/commands/payments.ts'
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

/** A payment of the invoice below with its own key, and a wait without a limit. */
export const newPayment = (
  key: string,
  more: Partial<Omit<NewPayment, 'id' | 'idempotencyRecord'>> = {},
): NewPayment => {
  const terms = {
    invoice_id: id('inv'),
    amount: 1000n,
    currency: 'USD',
    reference: null,
    settlement: 'immediate' as const,
    metadata: {},
    ...more,
  }
  const { personal: _, ...told } = terms
  const request = { ...told, amount: Number(terms.amount) }
  return {
    waitMs: 60_000,
    ...terms,
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
