import { anOrder, type Answer, aPayment, approvedInvoice, type Client, newKey, pay } from './client.ts'
import { FACT_TYPES } from '../../streams/facts.ts'

/** The types of facts that a tenant can cause; manifests belong to the system tenant. */
export const TENANT_FACT_TYPES = FACT_TYPES.filter(type => type !== 'ledger.manifest')

const act = (client: Client, path: string, { headers }: Answer, body: object = {}): Promise<Answer> =>
  client.post(path, body, { 'if-match': headers.get('etag') ?? '' })

/** Causes at least one fact of each of these types in the tenant of the client. */
export const causeEveryFact = async (client: Client): Promise<void> => {
  const cancelled = await client.post('/orders', anOrder())
  await act(client, `/orders/${cancelled.body.id}:cancel`, cancelled)
  const order = await client.post('/orders', { ...anOrder(), customer_reference: 'PO-1' })
  const voided = await client.post('/invoices', { order_id: order.body.id })
  await act(client, `/invoices/${voided.body.id}:void`, voided, { reason: 'typo' })
  const { invoiceId } = await approvedInvoice(client)
  const paid = await pay(client, aPayment(invoiceId, { amount: 900, reference: newKey() }))
  const refund = { amount: 5, reason: 'broken' }
  await client.post(`/payments/${paid.body.id}:refund`, refund, { 'idempotency-key': newKey() })
  const open = await approvedInvoice(client)
  const deferred = await pay(client, aPayment(open.invoiceId, { settlement: 'deferred' }))
  await client.post(`/payments/${deferred.body.id}:fail`, { code: 'declined' })
  await client.post('/exports', { resource: 'orders', format: 'csv' })
}
