import { randomUUID } from 'node:crypto'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { invoiceEntity, orderEntity } from '../../src/commands/entities.ts'
import { type Context, createLedger, handle, type Ledger } from '../../src/commands/handle.ts'
import { claimOf, idOfKey, randomId, type ScopedKey } from '../../src/commands/identifiers.ts'
import { raise } from '../../src/commands/invoices.ts'
import { pay } from '../../src/commands/payments.ts'
import type { EventStore, ExpectedRevision, NewEvent, StoredEvent } from '../../src/ports.ts'
import { realWorld } from '../../src/world.ts'
import { PARTS_PER_INVOICE } from './caller.ts'
import type { Stage } from './stage.ts'

/**
 * A log as the service writes it: its own commands, run against a store in memory that remembers every append, which are
 * then sent to the event store in the same order.
 */

const PART_AMOUNT = 100
const UNDER_WAY_MAX = 500
const CALLERS = 64
const WAIT_MS = 10_000

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

/** An order, its approved invoice and the payments that pay it in full, as the API would make them. */
const payOneInvoice = async (ledger: Ledger, secret: Uint8Array): Promise<void> => {
  const order_id = randomId('ord', ledger.world)
  const invoice_id = randomId('inv', ledger.world)
  const unit_amount = BigInt(PARTS_PER_INVOICE * PART_AMOUNT)
  const lines = [{ sku: 'tea', description: null, quantity: 1, unit_amount }]
  const order = { customer_reference: null, description: null, currency: 'USD', lines, metadata: {}, claim: null }
  await handle(ledger, orderEntity, order_id, { command: { type: 'CreateOrder', ...order }, context: contextOf() })
  const invoice = { id: invoice_id, order_id, due_date: '2030-01-01', metadata: {}, claim: null }
  await raise(ledger, invoice, contextOf())
  const approval = { type: 'ApproveInvoice' as const, approved_by: 'bench' }
  await handle(ledger, invoiceEntity, invoice_id, { command: approval, context: contextOf() })
  for (let part = 0; part < PARTS_PER_INVOICE; part++) {
    const terms = { invoice_id, amount: PART_AMOUNT, currency: 'USD', reference: randomUUID(), metadata: {} }
    const scope = { tenant: TENANT, subject: 'bench', client: 'bench', operation: 'create_payment' }
    const key: ScopedKey = { scope, key: randomUUID(), secret }
    const claim = claimOf(key, { ...terms, settlement: 'immediate' }, '2030-01-01T00:00:00.000Z')
    const payment = { ...terms, amount: BigInt(PART_AMOUNT), settlement: 'immediate' as const, waitMs: WAIT_MS }
    const paid = await pay(ledger, { ...payment, id: idOfKey('pay', key), claim }, contextOf())
    if (paid.kind !== 'created') throw new Error(`A payment of the benchmark was ${paid.kind}.`)
  }
}

const makeHistory = async (payments: number, secret: Uint8Array): Promise<Append[]> => {
  const { store, appends } = recordingStore()
  const ledger = createLedger(store, realWorld())
  let left = Math.ceil(payments / PARTS_PER_INVOICE)
  const caller = async (): Promise<void> => {
    while (left-- > 0) await payOneInvoice(ledger, secret)
  }
  await Promise.all(Array.from({ length: CALLERS }, caller))
  return appends
}

// Appends to one stream follow each other, those to different streams need not; a window keeps both sides' memory small.
const send = async (store: EventStore, appends: readonly Append[]): Promise<void> => {
  const last = new Map<string, Promise<void>>()
  const one = async ({ stream, events, expected }: Append, before: Promise<void> | undefined): Promise<void> => {
    await before
    const appended = await store.append(stream, events, expected)
    if (!appended.ok) throw new Error(`An append to ${stream} was refused.`)
  }
  const window: Promise<void>[] = []
  for (const append of appends) {
    const sent = one(append, last.get(append.stream))
    last.set(append.stream, sent)
    if (window.push(sent) >= UNDER_WAY_MAX) await window.shift()
  }
  await Promise.all(window)
}

/** How many events there are now, in all and of the categories that are projected. */
export type History = { readonly events: number; readonly projected: number }

const histories = new WeakMap<Stage, Promise<History>>()

const write = async (stage: Stage, payments: number): Promise<History> => {
  const { eventStoreUrl } = await stage.parts()
  const store = openEventStore({ connectionString: eventStoreUrl, appendDeadlineMs: 30_000 })
  stage.say(`making the events of ${payments} payments`)
  const appends = await makeHistory(payments, await createLedger(store, realWorld()).idSecret())
  stage.say(`appending ${appends.length} times`)
  await send(store, appends).finally(() => store.close())
  const count = (some: readonly Append[]): number => some.reduce((sum, { events }) => sum + events.length, 0)
  return { events: count(appends), projected: count(appends.filter(({ stream }) => !stream.startsWith('reference-'))) }
}

/** Fills the event store of the stage, once. */
export const historyOn = (stage: Stage, payments: number): Promise<History> => {
  const written = histories.get(stage) ?? write(stage, payments)
  histories.set(stage, written)
  return written
}
