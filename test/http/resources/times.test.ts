import { expect } from 'chai'
import { approvedInvoice, anOrder, type Client, clientOf } from '../../support/client.ts'
import { sharedService } from '../../support/service.ts'

/** Every parameter with a time refuses times that the event store or Postgres could not read. */

const second = '2026-01-01T00:00:00'
const REFUSED = [
  `${second}.${'1'.repeat(200)}Z`,
  `${second}.1234567891Z`,
  `${second}.Z`,
  `${second}Z${' '.repeat(300)}`,
  '0000-12-31T23:59:59Z',
  '+010000-01-01T00:00:00Z',
  '294277-01-01T00:00:00Z',
  '-0001-01-01T00:00:00Z',
  '2026-02-30T00:00:00Z',
  '2026-01-01T24:00:00Z',
  '2026-01-01T00:00:60Z',
  `${second}+24:00`,
  `${second}+0100`,
  `${second} 00:00`,
  `2026-13-01T00:00:00+01:00`,
  // In UTC these are in the years 0 and 10000.
  '0001-01-01T00:00:00+01:00',
  '9999-12-31T23:59:59-00:01',
  'infinity',
  'now',
  '',
]
const ACCEPTED = [
  `${second}Z`,
  `${second}.1Z`,
  `${second}.123456789Z`,
  `${second}+00:00`,
  `${second}-00:00`,
  `${second}.123456789+05:45`,
  '0001-01-01T00:00:00Z',
  '0001-01-01T01:00:00+01:00',
  '9999-12-31T23:59:59.999999999Z',
]

describe('a time', () => {
  let client: Client
  let invoiceId: string
  let orderId: string
  before(async () => {
    const service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant: 'times' }))
    ;({ invoiceId, orderId } = await approvedInvoice(client))
  })

  const queries: Readonly<Record<string, (time: string) => string>> = {
    'created_after of orders': time => `/orders?created_after=${time}`,
    'created_before of orders': time => `/orders?created_before=${time}`,
    'created_after of payments': time => `/payments?created_after=${time}`,
    'created_before of invoices': time => `/invoices?created_before=${time}`,
    'created_after of operations': time => `/operations?created_after=${time}`,
    'created_before of audit records': time => `/audit-records?created_before=${time}`,
    'from_time of events': time => `/events?from_time=${time}`,
    'as_of of an invoice': time => `/invoices/${invoiceId}?as_of=${time}`,
    'as_of of an order': time => `/orders/${orderId}?as_of=${time}`,
  }
  for (const [what, pathOf] of Object.entries(queries))
    it(`as ${what} is refused when it is malformed or out of range, and accepted otherwise`, async () => {
      for (const time of REFUSED) {
        const { status, body } = await client.get(pathOf(encodeURIComponent(time)))
        expect([status, body.code], time).to.deep.equal([400, 'validation_failed'])
      }
      for (const time of ACCEPTED)
        expect((await client.get(pathOf(encodeURIComponent(time)))).status, time).to.be.oneOf([200, 404])
    })

  const bodies: Readonly<Record<string, (time: string) => [path: string, body: object]>> = {
    'the beginning of a subscription': time => ['/subscriptions', { types: ['invoice.paid'], start: { time } }],
    'a filter of an export': time => [
      '/exports',
      { resource: 'orders', format: 'csv', filters: { created_after: time } },
    ],
  }
  for (const [what, of] of Object.entries(bodies))
    it(`as ${what} is refused when it is malformed or out of range, and accepted otherwise`, async () => {
      for (const time of REFUSED) {
        const { status, body } = await client.post(...of(time))
        expect([status, body.code], time).to.deep.equal([400, 'validation_failed'])
      }
      for (const time of ACCEPTED) expect((await client.post(...of(time))).status, time).to.be.oneOf([201, 202])
    })

  it('with an offset is the same instant as in UTC', async () => {
    const { body: order } = await client.post('/orders', anOrder())
    const at = Date.parse(order.created_at)
    const atOffset = (ms: number): string => new Date(ms + 5.75 * 3_600_000).toISOString().replace('Z', '+05:45')
    const asOf = (ms: number) => client.get(`/orders/${order.id}?as_of=${encodeURIComponent(atOffset(ms))}`)
    expect([(await asOf(at)).status, (await asOf(at - 1)).status]).to.deep.equal([200, 404])
  })

  it('as a due date has a year from 1 to 9999', async () => {
    const { body } = await client.post('/orders', anOrder())
    for (const due_date of ['0000-01-01', '10000-01-01', '2026-02-30', '2026-1-1', `2026-01-01${' '.repeat(200)}`])
      expect((await client.post('/invoices', { order_id: body.id, due_date })).body.code, due_date).to.equal(
        'validation_failed',
      )
    expect((await client.post('/invoices', { order_id: body.id, due_date: '9999-12-31' })).status).to.equal(201)
  })
})
