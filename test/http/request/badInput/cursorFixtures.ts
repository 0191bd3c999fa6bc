import { openDatabase } from '../../../../src/adapters/postgres/database.ts'
import { createCursors, type Cursors } from '../../../../src/http/reading/cursor.ts'
import { anOrder, aPayment, approvedInvoice, type Client, clientOf, pay } from '../../../support/client.ts'
import { eventually } from '../../../support/eventually.ts'
import type { TestService } from '../../../support/service.ts'
import type { BadInputFixtures } from './cases.ts'

/** All lists that have cursors, each with more than one page and with the cursor of its second page. */

export const TENANT = 'bad-cursors'
const OTHER_TENANT = 'bad-cursors-2'
const NO_ID = '00000000000000000000000000'

export type List = {
  readonly path: string
  /** The query of the request that returns the cursor; the cursor is valid for it only. */
  readonly filter: string
  /** Queries for which the cursor is invalid: another value of the filter, an additional filter, another filter. */
  readonly others: readonly string[]
}

export const NAMES = [
  'orders',
  'invoices',
  'payments',
  'operations',
  'events',
  'audit-records',
  'history of an order',
  'history of an invoice',
] as const
export type Name = (typeof NAMES)[number]

const AFTER = 'created_after=2000-01-01T00:00:00Z'
const listsOf = (orderId: string, invoiceId: string): Readonly<Record<Name, List>> => ({
  orders: { path: '/orders', filter: 'currency=USD', others: ['currency=EUR', 'currency=USD&state=open', AFTER] },
  invoices: {
    path: '/invoices',
    filter: 'currency=USD',
    others: ['currency=EUR', 'currency=USD&state=approved', `order_id=${orderId}`],
  },
  payments: {
    path: '/payments',
    filter: `invoice_id=${invoiceId}`,
    others: [`invoice_id=inv_${NO_ID}`, `invoice_id=${invoiceId}&state=succeeded`, `order_id=${orderId}`],
  },
  operations: {
    path: '/operations',
    filter: 'state=succeeded',
    others: ['state=failed', 'state=succeeded&kind=export', 'kind=export'],
  },
  events: {
    path: '/events',
    filter: 'type=order.created',
    others: ['type=invoice.paid', `type=order.created&subject=${orderId}`, `subject=${orderId}`],
  },
  'audit-records': {
    path: '/audit-records',
    filter: 'decision=granted',
    others: ['decision=denied', `decision=granted&${AFTER}`, 'subject=tester'],
  },
  'history of an order': { path: `/orders/${orderId}/history`, filter: '', others: [] },
  'history of an invoice': { path: `/invoices/${invoiceId}/history`, filter: '', others: [] },
})

const createResources = async (client: Client): Promise<{ orderId: string; invoiceId: string }> => {
  const { orderId, invoiceId } = await approvedInvoice(client)
  await approvedInvoice(client)
  for (const amount of [100, 200]) await pay(client, aPayment(invoiceId, { amount }))
  for (const resource of ['orders', 'payments']) {
    const { body } = await client.post('/exports', { resource, format: 'csv' })
    await eventually(async () => (await client.get(`/operations/${body.id}`)).body.state === 'succeeded')
  }
  return { orderId, invoiceId }
}

export const pathOf = ({ path }: List, ...parameters: readonly string[]): string =>
  `${path}?${parameters.filter(Boolean).join('&')}`

/** A cursor that contains `-` and `_`, which the standard alphabet of base64 lacks: each request yields another one. */
const cursorTo = async (client: Client, list: List): Promise<string> =>
  eventually(async () => {
    const { body } = await client.get(pathOf(list, 'limit=1', list.filter))
    const cursor: string | null = body.page.has_more ? body.page.next_cursor : null
    return cursor !== null && cursor.includes('-') && cursor.includes('_') && cursor
  })

export type CursorFixtures = {
  /** A client of another tenant. */
  readonly other: Client
  readonly token: string
  readonly lists: Readonly<Record<Name, List>>
  readonly cursors: Readonly<Record<Name, string>>
  /** A cursor of another tenant's list of orders. */
  readonly ofOtherTenant: string
  /** A cursor as the service would have encrypted it `agoMs` earlier, with its secret or another one. */
  readonly sealed: (name: Name, agoMs: number, secret?: Uint8Array) => string
}

const secretOf = async ({ addresses }: TestService): Promise<Uint8Array> => {
  const database = openDatabase({ connectionString: addresses.postgres })
  const [row] = await database.sql<{ secret: string }>('select secret from cursor_secrets')
  await database.close()
  return Buffer.from(row?.secret ?? '', 'base64')
}

/** The binding and the content of a cursor of a list. */
const contentOf = (name: Name, { path, filter }: List): readonly [binding: object, key: object] => {
  if (name === 'events')
    return [{ list: 'events', tenant: TENANT, type: filter.split('=')[1], subject: null }, { after: '0' }]
  if (name.startsWith('history')) return [{ tenant: TENANT, path }, { after: 0 }]
  const filters = Object.fromEntries(new URLSearchParams(filter))
  return [
    { tenant: TENANT, path, filters },
    { created_at: '2100-01-01T00:00:00.000Z', id: `ord_${NO_ID}` },
  ]
}

export const prepareCursors = async ({ client, service }: BadInputFixtures): Promise<CursorFixtures> => {
  const other = clientOf(service.api, await service.token({ tenant: OTHER_TENANT }))
  for (const amount of [1, 2]) await other.post('/orders', anOrder(amount))
  const { orderId, invoiceId } = await createResources(client)
  const lists = listsOf(orderId, invoiceId)
  const secret = await secretOf(service)
  const cursors: Partial<Record<Name, string>> = {}
  for (const name of NAMES) cursors[name] = await cursorTo(client, lists[name])
  return {
    other,
    token: await service.token({ tenant: TENANT }),
    lists,
    cursors: cursors as Record<Name, string>,
    ofOtherTenant: await cursorTo(other, lists.orders),
    sealed: (name, agoMs, given = secret) => {
      const sealer: Cursors = createCursors(given, () => Date.now() - agoMs)
      return sealer.encrypt(...contentOf(name, lists[name]))
    },
  }
}
