import type {
  Account,
  AuditRecord,
  HistoryEntry,
  Invoice,
  Order,
  Payment,
} from '../../../scripts/client/src/generated.ts'
import { afterOwnWrites, read, readAll, unlessMissing } from '../api.ts'
import { may } from '../session.ts'

/** What belongs to a case: an order with its invoices and payments, and everything that happened to each of them. */

export type Kind = 'order' | 'invoice' | 'payment'
export type Resource =
  | { readonly kind: 'order'; readonly now: Order }
  | { readonly kind: 'invoice'; readonly now: Invoice }
  | { readonly kind: 'payment'; readonly now: Payment }

export type CaseEvent = HistoryEntry & { readonly kind: Kind; readonly resource: string }

export type Case = { readonly resources: readonly Resource[]; readonly events: readonly CaseEvent[] }

const KINDS: Readonly<Record<string, Kind>> = { ord: 'order', inv: 'invoice', pay: 'payment' }
const ID = /^(ord|inv|pay)_[0-9A-HJKMNP-TV-Z]{26}$/

/** The kind of resource that an id names. */
export const kindOf = (id: string): Kind | undefined => KINDS[ID.exec(id)?.[1] ?? '']

/** More would be no page to look at. */
const PARTS_MAX = 50
const EVENTS_MAX = 500

const historyOf = async ({ kind, now: { id } }: Resource): Promise<readonly CaseEvent[]> => {
  const { items } = await readAll(`GET /${kind}s/{id}/history`, { path: { id } }, EVENTS_MAX)
  return items.map(entry => ({ ...entry, kind, resource: id }))
}

/** The order of the resource; undefined if the caller may not see it, or it was deleted. */
const orderOf = async (id: string): Promise<Order | undefined> =>
  may('orders:read') ? unlessMissing(() => read('GET /orders/{id}', { path: { id } })) : undefined

const orderIdOf = async (kind: Kind, id: string): Promise<string> => {
  if (kind === 'order') return id
  const path = { id }
  return kind === 'invoice'
    ? (await read('GET /invoices/{id}', { path })).order_id
    : (await read('GET /payments/{id}', { path })).order_id
}

/** Throws ApiError where the resource does not exist. */
export const readCase = async (id: string): Promise<Case> => {
  const kind = kindOf(id) ?? 'order'
  const order_id = await orderIdOf(kind, id)
  const input = { query: { order_id }, headers: afterOwnWrites() }
  const [order, invoices, payments] = await Promise.all([
    orderOf(order_id),
    may('invoices:read') ? readAll('GET /invoices', input, PARTS_MAX) : { items: [] },
    may('payments:read') ? readAll('GET /payments', input, PARTS_MAX) : { items: [] },
  ])
  const resources: readonly Resource[] = [
    ...(order ? [{ kind: 'order', now: order } as const] : []),
    ...invoices.items.map(now => ({ kind: 'invoice', now }) as const).toReversed(),
    ...payments.items.map(now => ({ kind: 'payment', now }) as const).toReversed(),
  ]
  if (resources.length === 0) await read('GET /orders/{id}', { path: { id: order_id } })
  const histories = await Promise.all(resources.map(historyOf))
  const events = histories.flat().toSorted((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0))
  return { resources, events }
}

const resourceAt = async ({ kind, now: { id } }: Resource, as_of: string): Promise<Resource> => {
  const input = { path: { id }, query: { as_of } }
  if (kind === 'order') return { kind, now: await read('GET /orders/{id}', input) }
  if (kind === 'invoice') return { kind, now: await read('GET /invoices/{id}', input) }
  return { kind, now: await read('GET /payments/{id}', input) }
}

/** The resources that existed at the time of the event, as they were right after it. */
export const caseAt = ({ resources, events }: Case, { at }: CaseEvent): Promise<readonly Resource[]> => {
  const begun = new Set(events.filter(event => event.at <= at).map(({ resource }) => resource))
  return Promise.all(resources.filter(({ now }) => begun.has(now.id)).map(resource => resourceAt(resource, at)))
}

export type Found = {
  /** Set where the text names exactly one case. */
  readonly only?: { readonly id: string; readonly event?: string }
  readonly payments: readonly Payment[]
  readonly accounts: readonly Account[]
  readonly records: readonly AuditRecord[]
}

const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i
const STREAM = /^(?:order|invoice|payment)-((?:ord|inv|pay)_\w{26})$/
const ENTRY = /^ent_[0-9A-HJKMNP-TV-Z]{26}$/

/** The case that an event belongs to, as the proof of the event names its stream. */
const caseOfEvent = async (event: string): Promise<Found['only']> => {
  if (!may('audit:read')) return undefined
  const proof = await unlessMissing(() => read('GET /audit/proof/{event_id}', { path: { event_id: event } }))
  const { stream = '' } = JSON.parse(proof?.event ?? '{}') as { readonly stream?: string }
  const [, id] = STREAM.exec(stream) ?? []
  return id === undefined ? undefined : { id, event }
}

/** Whatever the text may be: an entry of the journal, an event, a reference of a payment, a correlation id. */
export const find = async (text: string): Promise<Found> => {
  const nothing = { payments: [], accounts: [], records: [] }
  if (ENTRY.test(text) && may('ledger:read')) {
    const entry = await read('GET /journal-entries/{id}', { path: { id: text } })
    return { ...nothing, only: { id: entry.invoice_id, event: entry.event_id } }
  }
  const only = UUID.test(text) ? await caseOfEvent(text.toLowerCase()) : undefined
  if (only) return { ...nothing, only }
  const [payments, accounts, records] = await Promise.all([
    may('payments:read') ? readAll('GET /payments', { query: { reference: text } }, PARTS_MAX) : { items: [] },
    may('ledger:read') ? readAll('GET /accounts', { query: { customer_reference: text } }, PARTS_MAX) : { items: [] },
    may('audit:read') ? readAll('GET /audit-records', { query: { correlation_id: text } }, PARTS_MAX) : { items: [] },
  ])
  const found = { payments: payments.items, accounts: accounts.items, records: records.items }
  const [payment] = found.payments
  const isOnly = found.payments.length === 1 && found.accounts.length + found.records.length === 0
  return payment && isOnly ? { ...found, only: { id: payment.id } } : found
}
