import { randomUUID } from 'node:crypto'
import pLimit from 'p-limit'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { invoiceEntity, orderEntity } from '../../src/commands/entities.ts'
import { type Context, createLedger, handle, type Ledger } from '../../src/commands/commandHandler.ts'
import { derivedId, randomId } from '../../src/lib/identifiers.ts'
import { newIdempotencyRecord, idOfKey, type ScopedKey } from '../../src/commands/idempotency/record.ts'
import { raise } from '../../src/commands/invoices.ts'
import { pay } from '../../src/commands/payments.ts'
import type { Id } from '../../streams/ids.ts'
import type { EventStore, ExpectedRevision, NewEvent, StoredEvent } from '../../src/ports.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import { PARTS_PER_INVOICE, PART_AMOUNT } from './apiClient.ts'
import type { Harness } from './harness.ts'

/** The service's own commands run against a store in memory, whose appends are sent to the event store in order. */

const APPEND_DEADLINE_MS = 60_000
const CALLERS = 64
const WAIT_MS = 10_000
/** The events of these invoices are in memory at once, and those of the next ones while they are sent. */
const INVOICES_AT_ONCE = 400

type Append = { readonly stream: string; readonly events: readonly NewEvent[]; readonly expected: ExpectedRevision }

const recordingStore = () => {
  const streams = new Map<string, StoredEvent[]>()
  const appends: Append[] = []
  let position = 0n
  const store: Pick<EventStore, 'append' | 'readStream'> = {
    append: async (stream, events, expected) => {
      const stored = streams.get(stream) ?? []
      if (expected !== (stored.length === 0 ? 'no_stream' : BigInt(stored.length - 1)))
        return { ok: false, actual: BigInt(stored.length - 1) }
      const storedAt = new Date().toISOString()
      for (const event of events)
        stored.push({ ...event, stream, revision: BigInt(stored.length), position: ++position, storedAt })
      streams.set(stream, stored)
      appends.push({ stream, events, expected })
      return { ok: true, revision: BigInt(stored.length - 1), position }
    },
    async *readStream(stream, { from = 0n } = {}) {
      yield* (streams.get(stream) ?? []).slice(Number(from))
    },
  }
  const unused = (): never => {
    throw new Error('Commands neither subscribe nor ask for the head.')
  }
  return { store: { ...store, subscribe: unused, head: unused, close: async () => undefined }, appends }
}

const TENANT = 'bench'
const contextOf = (): Context => ({
  tenant: TENANT,
  subject: 'bench',
  client: 'bench',
  authority: 'payments:write',
  correlationId: randomUUID(),
  commandId: randomUUID(),
  at: new Date().toISOString(),
})

type Payer = { readonly ledger: Ledger; readonly secret: Uint8Array; readonly referenceEvery: number }

const payPart = async (
  { ledger, secret, referenceEvery }: Payer,
  invoice_id: Id<'inv'>,
  part: number,
): Promise<void> => {
  const token = part % referenceEvery === 0 ? randomId('prf', ledger.world) : null
  const reference = token && { stream: derivedId('ref', TENANT, token), store: async () => ({ token }) }
  const terms = { invoice_id, amount: PART_AMOUNT, currency: 'USD', metadata: {} }
  const scope = { tenant: TENANT, subject: 'bench', client: 'bench', operation: 'create_payment' }
  const key: ScopedKey = { scope, key: randomUUID(), secret }
  const idempotencyRecord = newIdempotencyRecord(
    key,
    { ...terms, reference: token, settlement: 'immediate' },
    '2030-01-01T00:00:00.000Z',
  )
  const payment = {
    ...{ ...terms, reference, waitMs: WAIT_MS },
    ...{ amount: BigInt(PART_AMOUNT), settlement: 'immediate' as const },
  }
  const paid = await pay(ledger, { ...payment, id: idOfKey('pay', key), idempotencyRecord }, contextOf())
  if (paid.kind !== 'created') throw new Error(`A payment of the benchmark was ${paid.kind}.`)
}

/** One order, its approved invoice and the payments that pay it in full, as the API would create them. */
const payOneInvoice = async (payer: Payer): Promise<void> => {
  const { ledger } = payer
  const order_id = randomId('ord', ledger.world)
  const invoice_id = randomId('inv', ledger.world)
  const unit_amount = BigInt(PARTS_PER_INVOICE * PART_AMOUNT)
  const lines = [{ sku: 'tea', description: null, quantity: 1, unit_amount }]
  const order = { customer_reference: null, description: null, currency: 'USD', lines, metadata: {}, claim: null }
  await handle(ledger, orderEntity, order_id, { command: { type: 'CreateOrder', ...order }, context: contextOf() })
  const invoice = { id: invoice_id, order_id, due_date: '2030-01-01', metadata: {}, idempotencyRecord: null }
  await raise(ledger, invoice, contextOf())
  const approval = { type: 'ApproveInvoice' as const, approved_by: 'bench' }
  await handle(ledger, invoiceEntity, invoice_id, { command: approval, context: contextOf() })
  for (let part = 0; part < PARTS_PER_INVOICE; part++) await payPart(payer, invoice_id, part)
  // As the process manager of fulfilment does when the invoice is paid.
  const completion = { type: 'CompleteOrder' as const, invoice_id }
  await handle(ledger, orderEntity, order_id, { command: completion, context: contextOf() })
}

const makeHistory = (invoices: number, payer: Omit<Payer, 'ledger'>): Promise<Append[][]> => {
  const limit = pLimit(CALLERS)
  const makeOne = async (): Promise<Append[]> => {
    const { store, appends } = recordingStore()
    await payOneInvoice({ ...payer, ledger: createLedger(store, realWorld()) })
    return appends
  }
  return Promise.all(Array.from({ length: invoices }, () => limit(makeOne)))
}

// The appends of one invoice follow each other, as requests do: the books need the order's event before those of its
// invoice.
const send = async (store: EventStore, histories: readonly Append[][]): Promise<void> => {
  const sendOne = async (appends: readonly Append[]): Promise<void> => {
    for (const { stream, events, expected } of appends) {
      const appended = await store.append(stream, events, expected)
      if (!appended.ok) throw new Error(`An append to ${stream} was refused.`)
    }
  }
  await Promise.all(histories.map(sendOne))
}

export type History = {
  /** The number of events, in total and of the projected categories. */
  readonly events: number
  readonly projected: number
  readonly payments: number
}

const countsOf = (appends: readonly Append[], invoices: number): History => {
  const count = (some: readonly Append[]): number => some.reduce((sum, { events }) => sum + events.length, 0)
  const projected = appends.filter(({ stream }) => !stream.startsWith('reference-'))
  return { events: count(appends), projected: count(projected), payments: invoices * PARTS_PER_INVOICE }
}

export const NO_HISTORY: History = { events: 0, projected: 0, payments: 0 }

export const sumOf = (one: History, other: History): History => ({
  events: one.events + other.events,
  projected: one.projected + other.projected,
  payments: one.payments + other.payments,
})

/** The next ones are made while these are sent. Every `referenceEvery` payments have a reference, one event more. */
export const writePayments = async (
  eventStoreUrl: string,
  { payments, referenceEvery }: { readonly payments: number; readonly referenceEvery: number },
): Promise<History> => {
  const store = openEventStore({ connectionString: eventStoreUrl, appendDeadlineMs: APPEND_DEADLINE_MS })
  try {
    const secret = await createLedger(store, realWorld()).idSecret()
    let written = NO_HISTORY
    let sending = Promise.resolve()
    for (let left = Math.ceil(payments / PARTS_PER_INVOICE); left > 0; left -= INVOICES_AT_ONCE) {
      const invoices = Math.min(left, INVOICES_AT_ONCE)
      const made = await makeHistory(invoices, { secret, referenceEvery })
      await sending
      written = sumOf(written, countsOf(made.flat(), invoices))
      sending = send(store, made)
      // A failure is thrown by the next `await`.
      sending.catch(() => undefined)
    }
    await sending
    return written
  } finally {
    await store.close()
  }
}

const histories = new WeakMap<Harness, Promise<History>>()

const write = async (harness: Harness, payments: number): Promise<History> => {
  const { eventStoreUrl } = await harness.stores()
  harness.log(`making the events of ${payments} payments`)
  return writePayments(eventStoreUrl, { payments, referenceEvery: 1 })
}

/** Fills the event store of the harness once; later calls return the same history. */
export const historyOn = (harness: Harness, payments: number): Promise<History> => {
  const written = histories.get(harness) ?? write(harness, payments)
  histories.set(harness, written)
  return written
}
