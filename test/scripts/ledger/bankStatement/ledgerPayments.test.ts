import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { expect } from 'chai'
import { createLedgerPayments } from '../../../../scripts/ledger/bankStatement/ledgerPayments.ts'
import { retryOf } from '../../../../src/http/problems/problemCatalogue.ts'
import { serving, tidyUp } from '../fixtures.ts'

/** Settlements over HTTP, with the answers that the API gives while others change the same payment. */

const ID = `pay_${'1'.padStart(26, '0')}`
const LINE = 'bank-1234567890'

type State = 'pending' | 'succeeded' | 'failed'

/** An API in which the payment is refused so often, and has these states after each refusal; the last one stays. */
const refusing = async (refusals: number, states: readonly State[], by = 'by-hand-00') => {
  let settlements = 0
  const reply = (response: ServerResponse, status: number, body: object): void => {
    response.writeHead(status, { 'content-type': 'application/json', 'x-correlation-id': LINE })
    response.end(JSON.stringify(body))
  }
  const payment = (state: State) => {
    return { id: ID, state, amount: 100, currency: 'USD', reference: 'R-1', settlement: 'deferred' }
  }
  const api = await serving((request, response) => {
    if (request.method === 'POST') return reply(response, (settlements += 1) > refusals ? 200 : 409, {})
    if (request.url?.includes('/history') === true)
      return reply(response, 200, { items: [{ type: 'PaymentSucceeded', correlation_id: by }] })
    reply(response, 200, payment(states[Math.min(settlements, states.length) - 1] ?? 'pending'))
  })
  const signal = new AbortController().signal
  let pauses = 0
  const sleep = async () => void (pauses += 1)
  const payments = createLedgerPayments({ api, head: 7n, token: async () => 'token', signal, sleep })
  return { settle: () => payments.settle(ID, LINE), settlements: () => settlements, pauses: () => pauses }
}

describe('the lists of payments for a bank statement', () => {
  after(tidyUp)

  it('are complete up to the head of the log at the start', async () => {
    const headersOfRequests: IncomingHttpHeaders[] = []
    const api = await serving((request, response) => {
      headersOfRequests.push(request.headers)
      const isBehind = headersOfRequests.length === 1
      response.writeHead(isBehind ? 503 : 200, {
        'content-type': isBehind ? 'application/problem+json' : 'application/json',
        'retry-after': '0',
      })
      response.end(
        JSON.stringify(
          isBehind
            ? { code: 'projection_behind', retry: retryOf('projection_behind') }
            : { items: [], page: { next_cursor: null, has_more: false } },
        ),
      )
    })
    const { signal } = new AbortController()
    const payments = createLedgerPayments({ api, head: 42n, token: async () => 'token', signal })
    expect(await payments.named('R-1')).to.deep.equal([])
    expect(await Array.fromAsync(payments.pending())).to.deep.equal([])
    const waits = headersOfRequests.map(headers => [
      headers['if-min-position'],
      /^wait=\d+$/.test(String(headers.prefer)),
    ])
    expect(waits).to.deep.equal(Array.from({ length: 3 }, () => ['42', true]))
  })
})

describe('settlements by a bank statement', () => {
  after(tidyUp)

  it('wait until the invoice has accepted the payment', async () => {
    const { settle, pauses } = await refusing(3, ['pending'], LINE)
    expect(await settle()).to.deep.equal({ kind: 'settled', by: LINE })
    expect(pauses()).to.equal(3)
  })

  it('return the correlation id of another caller that settled the payment after the refusal', async () => {
    const { settle } = await refusing(1, ['succeeded'])
    expect(await settle()).to.deep.equal({ kind: 'settled', by: 'by-hand-00' })
  })

  it('return that the payment has failed', async () => {
    const { settle } = await refusing(2, ['pending', 'failed'])
    expect(await settle()).to.deep.equal({ kind: 'failed' })
  })

  it('give up a payment that is not accepted in time, and after several of them try each other one once', async () => {
    const { settle, pauses } = await refusing(Infinity, ['pending'])
    for (let payment = 1; payment <= 8; payment++) expect(await settle()).to.deep.equal({ kind: 'not_accepted' })
    const before = pauses()
    expect(before).to.equal(8 * 29)
    expect(await settle()).to.deep.equal({ kind: 'not_accepted' })
    expect(pauses()).to.equal(before)
  })
})
