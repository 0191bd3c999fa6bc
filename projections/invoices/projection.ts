import type { Annotations } from '../../streams/idempotencyRecord.ts'
import type { InvoiceEvent, InvoiceStatus } from '../../streams/invoice/index.ts'
import { PersistentSet } from '../../streams/persistentMap.ts'
import { type Projection, RESOURCE_COLUMNS, type ResourceRow } from '../projection.ts'

export type InvoiceRow = ResourceRow & {
  readonly state: InvoiceStatus
  readonly order_id: string
  readonly currency: string
  readonly amount_due: bigint
  readonly amount_paid: bigint
  readonly amount_pending: bigint
  readonly amount_refunded: bigint
  readonly due_date: string
  readonly approved_by: string | null
  readonly approved_at: string | null
  readonly paid_at: string | null
  readonly metadata: Annotations
  /** The pending payments that hold a part of the invoice. It is an array when read from the table. */
  readonly reserved: PersistentSet<string> | readonly string[]
}

const reservedIn = ({ reserved }: InvoiceRow): PersistentSet<string> =>
  reserved instanceof PersistentSet ? reserved : PersistentSet.of(reserved)

export const invoices: Projection<InvoiceEvent, InvoiceRow> = {
  name: 'invoices_v1',
  category: 'invoice',
  columns: {
    ...RESOURCE_COLUMNS,
    order_id: 'text',
    currency: 'text',
    amount_due: 'bigint',
    amount_paid: 'bigint',
    amount_pending: 'bigint',
    amount_refunded: 'bigint',
    due_date: 'text',
    approved_by: 'text',
    approved_at: 'timestamptz',
    paid_at: 'timestamptz',
    metadata: 'json',
    reserved: 'json',
  },
  first: 'InvoiceRaised',
  begin: ({ event }) => {
    if (event.type !== 'InvoiceRaised') throw new TypeError(event.type)
    const { claim: _, ...terms } = event.data
    return {
      ...terms,
      state: 'draft',
      amount_paid: 0n,
      amount_pending: 0n,
      amount_refunded: 0n,
      approved_by: null,
      approved_at: null,
      paid_at: null,
      reserved: PersistentSet.of(),
    }
  },
  on: {
    InvoiceRaised: () => ({}),
    InvoiceApproved: (_, { event: { data }, metadata }) => ({
      state: 'approved',
      approved_by: data.approved_by,
      approved_at: metadata.at,
    }),
    InvoiceVoided: () => ({ state: 'voided' }),
    PaymentReserved: (row, { event: { data } }) => ({
      amount_pending: row.amount_pending + data.amount,
      reserved: reservedIn(row).with(data.payment_id),
    }),
    PaymentRefused: () => ({}),
    PaymentReleased: (row, { event: { data } }) => ({
      amount_pending: row.amount_pending - data.amount,
      reserved: reservedIn(row).without(data.payment_id),
    }),
    PaymentApplied: (row, { event: { data } }) => {
      const reserved = reservedIn(row)
      return {
        state: 'partially_paid',
        amount_paid: row.amount_paid + data.amount,
        amount_pending: reserved.has(data.payment_id) ? row.amount_pending - data.amount : row.amount_pending,
        reserved: reserved.without(data.payment_id),
      }
    },
    RefundApplied: (row, { event: { data } }) => ({ amount_refunded: row.amount_refunded + data.amount }),
    InvoicePaid: (_, { metadata }) => ({ state: 'paid', paid_at: metadata.at }),
  },
}
