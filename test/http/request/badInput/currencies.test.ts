import { approvedInvoice, newKey } from '../../../support/client.ts'
import { type BadRequest, badInput, JSON_TYPE, plain, refusedAs } from './harness.ts'

/** The literal as it stands in the body, or the text of a query. */
type Currency = readonly [where: 'order' | 'payment' | 'export' | 'list', literal: string]
type Resources = { readonly invoiceId: string; readonly watched: readonly string[] }

const LINES = '"lines":[{"sku":"a","quantity":1,"unit_amount":100}]'

const request = ([where, literal]: Currency, { invoiceId }: Resources): BadRequest => {
  const post = (path: string, body: string): BadRequest => ({
    method: 'POST',
    path,
    headers: [JSON_TYPE, ['Idempotency-Key', newKey()]],
    body,
  })
  switch (where) {
    case 'order':
      return post('/orders', `{"currency":${literal},${LINES}}`)
    case 'payment':
      return post('/payments', `{"invoice_id":"${invoiceId}","amount":1,"currency":${literal}}`)
    case 'export':
      return post('/exports', `{"resource":"orders","format":"csv","filters":{"currency":${literal}}}`)
    case 'list':
      return { path: `/orders?${literal}`, headers: [] }
  }
}

const of = (where: Currency[0], literals: readonly string[]): Record<string, Currency> =>
  Object.fromEntries(Object.entries(plain(literals, `${where} `)).map(([name, text]) => [name, [where, text]]))
const inOrder = (names: readonly string[]) =>
  refusedAs(
    [400, 'validation_failed', '/currency'],
    of(
      'order',
      names.map(name => JSON.stringify(name)),
    ),
  )

const withoutMinorUnit = inOrder([
  ...['XAU', 'XAG', 'XPT', 'XPD', 'XXX', 'XTS', 'XDR', 'XBA', 'XBB', 'XBC', 'XBD', 'XSU', 'XUA'],
])
const withdrawn = inOrder(['DEM', 'FRF', 'ITL', 'GRD', 'HRK', 'ZWL', 'SLL', 'VEF', 'CUC', 'MRO'])
const unknown = inOrder(['ZZZ', 'AAA', 'BTC', 'ETH', 'USDC', 'EURO', 'US', 'U', '', 'USDT', 'USDUSD', 'USD,EUR'])
const misspelt = inOrder([
  'usd',
  'Usd',
  'uSD',
  'USd',
  ' USD',
  'USD ',
  'US D',
  '\tUSD',
  'USD\n',
  'USD\r\n',
  '"USD"',
  "'USD'",
])
const lookalike = inOrder([
  'АUD',
  'UЅD',
  'ＵＳＤ',
  'USD\u200b',
  '\ufeffUSD',
  'U\u0305SD',
  'ﬀS',
  '$',
  '€',
  '£',
  '💰',
  'US\u202e',
])
const members = inOrder(['toString', 'constructor', 'hasOwnProperty', 'valueOf', '__proto__', 'length', '0'])

badInput<Currency, Resources>({
  set: 'currencies',
  least: 60,
  prepare: async client => {
    const { invoiceId } = await approvedInvoice(client)
    return { invoiceId, watched: [`/invoices/${invoiceId}`] }
  },
  request,
  refused: [
    ...[...withoutMinorUnit, ...withdrawn, ...unknown, ...misspelt, ...lookalike, ...members],
    ...refusedAs(
      [400, 'validation_failed', '/currency'],
      of('order', ['840', '978.0', 'null', 'true', '[]', '["USD"]', '{}', '{"code":"USD"}']),
    ),
    ...refusedAs([400, 'invalid_json'], of('order', ['USD', "'USD'", '"U\\x53D"', ''])),
    ...refusedAs([400, 'validation_failed', '/currency'], of('order', ['"US\\u0000"', '"\\ud83dUS"'])),
    ...refusedAs(
      [400, 'validation_failed', '/currency'],
      of('payment', ['"XAU"', '"usd"', '"US"', '""', '"USD "', '"АUD"', '"toString"', '840', 'null', '["USD"]']),
    ),
    ...refusedAs(
      [400, 'validation_failed', '/filters/currency'],
      of('export', ['"XAU"', '"usd"', '""', '"__proto__"', 'null', '["USD"]', '840']),
    ),
    ...refusedAs(
      [400, 'validation_failed', '?currency'],
      of('list', [
        ...[
          'currency=usd',
          'currency=XAU',
          'currency=',
          'currency',
          'currency=USD%20',
          'currency=+USD',
          'currency=US%00D',
        ],
        ...['currency=USD,EUR', 'currency=USD%2CEUR', 'currency=%F0%9F%92%B0', 'currency=toString', 'currency=%FF'],
      ]),
    ),
    ...refusedAs(
      [400, 'unknown_parameter'],
      of('list', ['currency=USD&currency=EUR', 'currency=USD&currency=USD', 'Currency=USD', 'currency[]=USD']),
    ),
  ],
  accepted: [
    ['without minor digits', ['order', '"JPY"'], 201, () => ({ currency: 'JPY', exponent: 0 })],
    ['with three', ['order', '"BHD"'], 201, () => ({ currency: 'BHD', exponent: 3 })],
    ['with four', ['order', '"CLF"'], 201, () => ({ currency: 'CLF', exponent: 4 })],
    ['that divides by five, in ISO 4217 two digits: MGA', ['order', '"MGA"'], 201, () => ({ exponent: 2 })],
    ['that divides by five, in ISO 4217 two digits: MRU', ['order', '"MRU"'], 201, () => ({ exponent: 2 })],
    ['written with escapes', ['order', '"\\u0055\\u0053D"'], 201, () => ({ currency: 'USD' })],
    ['the invoice’s own', ['payment', '"USD"'], 201, () => ({ currency: 'USD' })],
    ['in a list, written with escapes', ['list', 'curr%65ncy=%55SD'], 200],
  ],
})
