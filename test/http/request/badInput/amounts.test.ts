import { approvedInvoice, aPayment, newKey, pay } from '../../../support/client.ts'
import { type BadRequest, badInput, JSON_TYPE, plain, refusedAs } from './harness.ts'

type Where = 'payment' | 'refund' | 'price' | 'quantity' | 'lines'
type Amount = readonly [Where, string]
type Resources = { readonly invoiceId: string; readonly paymentId: string; readonly watched: readonly string[] }

const AMOUNT_MAX = 999_999_999_999

const BODIES: Readonly<Record<Where, (literal: string, on: Resources) => string>> = {
  payment: (literal, { invoiceId }) => `{"invoice_id":"${invoiceId}","amount":${literal},"currency":"USD"}`,
  refund: literal => `{"amount":${literal},"reason":"x"}`,
  price: literal => `{"currency":"USD","lines":[{"sku":"a","quantity":1,"unit_amount":${literal}}]}`,
  quantity: literal => `{"currency":"USD","lines":[{"sku":"a","quantity":${literal},"unit_amount":1}]}`,
  lines: literal => `{"currency":"USD","lines":${literal}}`,
}

const pathOf = (where: Where, { paymentId }: Resources): string => {
  if (where === 'payment') return '/payments'
  return where === 'refund' ? `/payments/${paymentId}:refund` : '/orders'
}

const request = ([where, literal]: Amount, on: Resources): BadRequest => ({
  method: 'POST',
  path: pathOf(where, on),
  headers: [JSON_TYPE, ['Idempotency-Key', newKey()]],
  body: BODIES[where](literal, on),
})

const of = (where: Where, literals: readonly string[]): Record<string, Amount> =>
  Object.fromEntries(Object.entries(plain(literals, `${where} `)).map(([name, text]) => [name, [where, text]]))

const noAmount = (literals: readonly string[]) =>
  refusedAs([400, 'validation_failed', '/amount'], of('payment', literals))

const zeros = noAmount(['0', '-0', '0.0', '-0.0', '0e0', '0e5', '0.000', '-0e-3', '0E+2'])
const negative = noAmount(['-1', '-100', '-0.5', '-1e2', '-999999999999', '-9007199254740993', '-1e400'])
const fractions = noAmount([
  ...['0.5', '1.5', '99.99', '100.1', '0.1e0', '1e-1', '15e-1', '100.5e0', '1e-400', '0.9999999999'],
  ...['100.00000000000000000001', '0.99999999999999999999', '99.99999999999999999999999', '1.7976931348623157e-308'],
])
const tooMuch = noAmount([
  ...['1000000000000', '1000000000000.0', '999999999999.5', '1e12', '1e13', '1e21', '1e100', '1e308', '1e309', '1e400'],
  ...['9007199254740991', '9007199254740992', '9007199254740993', '18446744073709551616', '99999999999999999999'],
  ...['340282366920938463463374607431768211456', '1e999999999999999999999'],
])
const otherTypes = noAmount([
  ...[
    '"100"',
    '"1e2"',
    '""',
    '" "',
    '"NaN"',
    '"Infinity"',
    '"100.00"',
    '"1,000"',
    '"0x64"',
    '"١٠٠"',
    '"$100"',
    '"100 USD"',
  ],
  ...[
    'null',
    'true',
    'false',
    '[]',
    '[100]',
    '[1,2]',
    '{}',
    '{"amount":100}',
    '{"value":100,"exponent":2}',
    '{"$gt":0}',
  ],
])
const invalidJson = refusedAs(
  [400, 'invalid_json'],
  of('payment', [
    ...[
      'NaN',
      'Infinity',
      '-Infinity',
      '0x64',
      '0b1',
      '0o7',
      '+100',
      '0100',
      '00',
      '-01',
      '1_000',
      '.5',
      '5.',
      '1e',
      '1e+',
    ],
    ...[
      '1.e2',
      '--1',
      '1 0',
      '1,000',
      '100n',
      '1f',
      '½',
      '١٠٠',
      '１００',
      'undefined',
      '-',
      '',
      '$100',
      '100 USD',
      '100%',
    ],
  ]),
)
const ofOtherMembers = [
  ...refusedAs(
    [400, 'validation_failed', '/amount'],
    of('refund', ['0', '-1', '0.5', '1000000000000', '"1"', 'null', '[1]']),
  ),
  ...refusedAs(
    [400, 'validation_failed', '/lines/0/unit_amount'],
    of('price', ['0', '-1', '1.5', '1000000000000', '"1"', 'null', '0.99999999999999999999']),
  ),
  ...refusedAs(
    [400, 'validation_failed', '/lines/0/quantity'],
    of('quantity', ['0', '-1', '1.5', '1000001', '"1"', 'null', '0.99999999999999999999', '1e400']),
  ),
  ...refusedAs<Amount>([400, 'validation_failed', '/lines'], {
    'a line above the maximum of an order': ['lines', '[{"sku":"a","quantity":1000000,"unit_amount":1000000}]'],
    'two lines that exceed the maximum by one': [
      'lines',
      `[{"sku":"a","quantity":1,"unit_amount":${AMOUNT_MAX}},{"sku":"b","quantity":1,"unit_amount":1}]`,
    ],
    'a sum beyond the integers of a double': [
      'lines',
      `[${Array.from({ length: 200 }, () => `{"sku":"a","quantity":1000000,"unit_amount":${AMOUNT_MAX}}`).join(',')}]`,
    ],
  }),
]

badInput<Amount, Resources>({
  set: 'amounts',
  least: 90,
  prepare: async client => {
    const { invoiceId } = await approvedInvoice(client, AMOUNT_MAX)
    const { body } = await pay(client, aPayment(invoiceId, { amount: 1_000 }))
    return { invoiceId, paymentId: body.id, watched: [`/invoices/${invoiceId}`, `/payments/${body.id}`] }
  },
  request,
  refused: [...zeros, ...negative, ...fractions, ...tooMuch, ...otherTypes, ...invalidJson, ...ofOtherMembers],
  accepted: [
    ...[
      '10',
      '10.0',
      '10.000',
      '1e1',
      '1E1',
      '1.0e1',
      '1e+1',
      '100e-1',
      '1000e-2',
      '0.1e2',
      '10e0',
      `10.${'0'.repeat(400)}`,
    ].map(literal => [`ten as ${literal.slice(0, 20)}`, ['payment', literal], 201, () => ({ amount: 10 })] as const),
    ['the least', ['payment', '1'], 201, () => ({ amount: 1 })],
    ['a refund of ten as 1e1', ['refund', '1e1'], 200, () => ({ refunded_amount: 10 })],
    ['the most', ['price', `${AMOUNT_MAX}`], 201, () => ({ total_amount: AMOUNT_MAX })],
    ['the most as 999999.999999e6', ['price', '999999.999999e6'], 201, () => ({ total_amount: AMOUNT_MAX })],
    ['a million of one', ['quantity', '1e6'], 201, () => ({ total_amount: 1_000_000 })],
  ],
})
