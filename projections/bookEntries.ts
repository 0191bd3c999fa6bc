import type { AnyEvent } from '../streams/decider.ts'
import type { Recorded } from '../streams/envelope.ts'
import type { OrderEvent } from '../streams/order/index.ts'
import { type Booking, type BookingLine, bookingOf, type EntryKind } from './bookings.ts'
import { type AccountKind, chartRow, type Direction } from './chartOfAccounts.ts'

/**
 * Journal entries from events in the order of the log. The receivables of an invoice are on the account of the customer
 * whom its order had when it was invoiced, also when the order gets another customer later.
 */

export type EntryLine = {
  readonly account: string
  readonly kind: AccountKind
  readonly customer_reference: string | null
  readonly direction: Direction
  readonly amount: bigint
}

/** A balanced entry, before its time and the balances after it are known. */
export type Entry = Omit<Booking, 'lines' | 'pending' | 'reverses'> & {
  readonly position: bigint
  readonly event_id: string
  readonly tenant_id: string
  /** See `bookedTime`. */
  readonly time: string
  /** The event of the entry that this one reverses. */
  readonly reverses: string | null
  readonly lines: readonly EntryLine[]
  readonly pending: readonly EntryLine[]
}

/** The customer of an order, or that of an invoice, which does not change. */
export type CustomerRow = { readonly id: string; readonly customer_reference: string | null }

/** The state after the earlier events: customers by id of order and invoice, and event ids of entries by `entryKey`. */
export type EarlierEntries = {
  readonly customers: Map<string, string | null>
  readonly entries: Map<string, string>
  readonly accountCode: AccountCodeOf
}

/** The code of an account; `customer` is the reference of the order, null for orders without one. */
export type AccountCodeOf = (kind: AccountKind, currency: string, customer: string | null) => string

/** The ids of orders and invoices whose customers the events need, and the entries that they may reverse. */
export type Needed = { readonly customers: readonly string[]; readonly entries: readonly string[] }

/** Names an entry by its kind and the payment, or the invoice, that it is about. */
const entryKey = (kind: EntryKind, { payment_id, invoice_id }: Booking): string => `${kind}/${payment_id ?? invoice_id}`

export const neededFor = (events: readonly Recorded<AnyEvent>[]): Needed => {
  const customers = new Set<string>()
  const entries = new Set<string>()
  for (const recorded of events) {
    if (recorded.event.type === 'OrderInvoiced') customers.add(recorded.id)
    const booking = bookingOf(recorded)
    if (booking === undefined) continue
    customers.add(booking.invoice_id)
    if (booking.reverses !== undefined) entries.add(entryKey(booking.reverses, booking))
  }
  return { customers: [...customers], entries: [...entries] }
}

/** A stream that the entry needs is parked, or was discarded. */
export class CustomerUnknown extends Error {
  constructor(id: string) {
    super(`The books do not have the customer of ${id}: an event of its order is parked or was discarded.`)
    this.name = 'CustomerUnknown'
  }
}

const customerOf = ({ customers }: EarlierEntries, id: string): string | null => {
  const customer = customers.get(id)
  if (customer === undefined) throw new CustomerUnknown(id)
  return customer
}

const customerIn = (recorded: Recorded<AnyEvent>, earlier: EarlierEntries): CustomerRow | undefined => {
  const event = recorded.event as OrderEvent
  const { id } = recorded
  if (event.type === 'OrderInvoiced') return { id: event.data.invoice_id, customer_reference: customerOf(earlier, id) }
  if (event.type !== 'OrderCreated' && event.type !== 'OrderChanged') return undefined
  const { customer_reference } = event.data
  return customer_reference === undefined ? undefined : { id, customer_reference }
}

/** The books do not change any more before a moment that is this long past by the clock of the event store. */
export const FINAL_AFTER_MS = 3_000

/**
 * The time of an event: that of its decision, as far as this is credible. Clocks of several machines differ: a decision
 * cannot be later than its storage, nor is one dated back that was stored late.
 */
export const bookedTime = (at: string, storedAt: string): string => {
  const latestMs = Date.parse(storedAt)
  const earliestMs = latestMs - FINAL_AFTER_MS
  const atMs = Date.parse(at)
  if (atMs >= earliestMs && atMs <= latestMs) return at
  return new Date(atMs < earliestMs ? earliestMs : latestMs).toISOString()
}

const timeOf = ({ metadata: { at }, storedAt }: Recorded<AnyEvent>): string =>
  storedAt === undefined ? at : bookedTime(at, storedAt)

const entryOf = (recorded: Recorded<AnyEvent>, booking: Booking, earlier: EarlierEntries): Entry | undefined => {
  const { lines, pending, reverses, ...booked } = booking
  const reversed = reverses === undefined ? null : earlier.entries.get(entryKey(reverses, booking))
  if (reversed === undefined) return undefined
  const customer = customerOf(earlier, booking.invoice_id)
  const lineOf = ({ account: kind, direction, amount }: BookingLine): EntryLine => ({
    account: earlier.accountCode(kind, booking.currency, customer),
    kind,
    customer_reference: chartRow(kind).isPerCustomer ? customer : null,
    direction,
    amount,
  })
  const { position, eventId: event_id, metadata } = recorded
  const source = { position, event_id, tenant_id: metadata.tenant, time: timeOf(recorded), reverses: reversed }
  return { ...booked, ...source, lines: lines.map(lineOf), pending: pending.map(lineOf) }
}

/**
 * The entries of the events, and the customers that they set. `earlier` has the rows that `neededFor` names; those of
 * the events are added to it. Throws CustomerUnknown.
 */
export const entriesOf = (
  events: readonly Recorded<AnyEvent>[],
  earlier: EarlierEntries,
): { readonly entries: readonly Entry[]; readonly customers: readonly CustomerRow[] } => {
  const entries: Entry[] = []
  const customers = new Map<string, CustomerRow>()
  for (const recorded of events) {
    const customer = customerIn(recorded, earlier)
    if (customer !== undefined) {
      earlier.customers.set(customer.id, customer.customer_reference)
      customers.set(customer.id, customer)
    }
    const booking = bookingOf(recorded)
    const entry = booking && entryOf(recorded, booking, earlier)
    if (booking === undefined || entry === undefined) continue
    earlier.entries.set(entryKey(entry.kind, booking), entry.event_id)
    entries.push(entry)
  }
  return { entries, customers: [...customers.values()] }
}
