import { expect } from 'chai'
import { createPersonalTexts } from '../../../src/personalTexts/personalTexts.ts'
import { type Answer, anOrder, aPayment, approvedInvoice, type Client, clientOf } from '../../support/client.ts'
import { newKey, pay, recordOf } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { sharedService } from '../../support/service.ts'
import { caller, startVariant, type Variant } from '../../support/serviceVariants.ts'
import { type Switchable, switchable } from '../../support/switchableDatabase.ts'

/** Requests with one key in one process, the second of which finds Postgres down while the first one's append is under way. */

const TENANT = 'claim-turns'
/** Longer than a text that was read is used without another statement. */
const LATER_MS = 3_000

type Case = { readonly stream: string; readonly request: (client: Client) => Promise<() => Promise<Answer>> }

const CASES: Readonly<Record<string, Case>> = {
  'a refund': {
    stream: 'refund-',
    request: async client => {
      const { invoiceId } = await approvedInvoice(client)
      const { body } = await pay(client, aPayment(invoiceId, { amount: 10, reference: `INV ${newKey()}` }))
      const key = { 'idempotency-key': newKey() }
      return () => client.post(`/payments/${body.id}:refund`, { amount: 4, reason: 'broken' }, key)
    },
  },
  'an order': {
    stream: 'order-',
    request: async client => {
      const key = { 'idempotency-key': newKey() }
      const order = { ...anOrder(), customer_reference: `Jane Doe ${newKey()}` }
      return () => client.post('/orders', order, key)
    },
  },
  'a subscription': {
    stream: 'subscription-',
    request: async client => {
      const key = { 'idempotency-key': newKey() }
      return () => client.post('/subscriptions', { types: ['invoice.paid'], start: 'beginning' }, key)
    },
  },
  'an export with a filter': {
    stream: 'operation-',
    request: async client => {
      const key = { 'idempotency-key': newKey() }
      const body = { resource: 'payments', format: 'csv', filters: { reference: `INV ${newKey()}` } }
      return () => client.post('/exports', body, key)
    },
  },
}

describe('a repetition that finds Postgres down while the first request is about to append', () => {
  let variant: Variant
  let client: Client
  let switched: Switchable
  let skewMs = 0
  /** The streams whose appends wait, and the call that lets them go on. */
  let held: { readonly stream: string; readonly reached: () => void; readonly until: Promise<void> } | undefined

  before(async () => {
    variant = await startVariant(await sharedService(), {
      authenticate: async () => ({ ...caller, tenant: TENANT }),
      database: real => {
        switched = switchable(real)
        return switched.database
      },
      store: real => ({
        ...real,
        append: async (stream, events, expected) => {
          if (held !== undefined && stream.startsWith(held.stream)) {
            held.reached()
            await held.until
          }
          return real.append(stream, events, expected)
        },
      }),
      services: usual => {
        const { world } = usual.ledger
        const skewed = { ...usual.ledger, world: { ...world, monotonicMs: () => world.monotonicMs() + skewMs } }
        return { ...usual, personalTexts: createPersonalTexts(usual.database.sql, skewed) }
      },
    })
    client = clientOf(variant.api)
  })
  after(() => variant.close())
  afterEach(() => {
    switched.state.isDown = false
    held = undefined
  })

  for (const [name, { stream, request }] of Object.entries(CASES))
    it(`waits for the first one and is no 503: ${name}`, async () => {
      const send = await request(client)
      const { promise: until, resolve: release } = Promise.withResolvers<void>()
      const reached = Promise.withResolvers<void>()
      held = { stream, reached: reached.resolve, until }
      const first = send()
      await reached.promise
      switched.state.isDown = true
      skewMs += LATER_MS
      const { refused } = switched.state
      const second = send()
      // The first one appends when Postgres has refused the second, which would be answered at once if it did not wait.
      await eventually(() => switched.state.refused > refused)
      release()
      const { status, text } = await second
      expect(status, text).to.be.oneOf([200, 201, 202, 504])
      await first
      switched.state.isDown = false
      const [third, fourth] = [await send(), await send()]
      expect(third.status, third.text).to.be.oneOf([200, 201, 202])
      expect(recordOf(fourth)).to.deep.equal(recordOf(third))
    })
})
