import { anOrder, approvedInvoice, aPayment, newKey, pay } from '../../../support/client.ts'
import { type BadRequest, badInput, JSON_TYPE, plain, refusedAs } from './harness.ts'

/** The lines of Idempotency-Key, or the path segment of the key at /idempotency-keys. */
type Key = readonly [where: 'payment' | 'order' | 'refund' | 'path', ...lines: readonly string[]]
type Resources = {
  readonly invoiceId: string
  readonly paymentId: string
  /** The resource that was created with the key KEPT. */
  readonly orderId: string
  readonly watched: readonly string[]
}

const KEPT = `kept-${newKey()}-\\`
const quoted = (key: string): string => `"${key.replaceAll(/["\\]/g, '\\$&')}"`
const LONG = 'k'.repeat(255)
/** The UTF-8 bytes of a text, as they are sent. */
const utf8 = (text: string): string => Buffer.from(text).toString('latin1')

const request = ([where, ...lines]: Key, { invoiceId, paymentId }: Resources): BadRequest => {
  const post = (path: string, body: object): BadRequest => ({
    method: 'POST',
    path,
    headers: [JSON_TYPE, ...lines.map(line => ['Idempotency-Key', line] as const)],
    body: JSON.stringify(body),
  })
  switch (where) {
    case 'payment':
      return post('/payments', aPayment(invoiceId))
    case 'order':
      return post('/orders', anOrder())
    case 'refund':
      return post(`/payments/${paymentId}:refund`, { reason: 'x' })
    case 'path':
      return { path: `/idempotency-keys/${lines[0]}`, headers: [] }
  }
}

const of = (where: Key[0], lines: Readonly<Record<string, string>>): Record<string, Key> =>
  Object.fromEntries(Object.entries(lines).map(([name, line]) => [`${where}: ${name}`, [where, line]]))

const INVALID = [400, 'idempotency_key_invalid'] as const
const NO_VALUE = [400, 'validation_failed', '?operation'] as const

badInput<Key, Resources>({
  set: 'idempotency keys',
  least: 60,
  prepare: async client => {
    const { invoiceId } = await approvedInvoice(client)
    const { body } = await pay(client, aPayment(invoiceId))
    const kept = await client.post('/orders', anOrder(), { 'idempotency-key': quoted(KEPT) })
    const watched = [`/invoices/${invoiceId}`, `/payments/${body.id}`, `/orders/${kept.body.id}`]
    return { invoiceId, paymentId: body.id, orderId: kept.body.id, watched }
  },
  request,
  refused: [
    ...refusedAs<Key>([400, 'idempotency_key_missing'], {
      'a payment without a key': ['payment'],
      'a refund without a key': ['refund'],
    }),
    ...refusedAs<Key>(INVALID, {
      ...of('payment', {
        'an empty line': '',
        'an empty text in quotes': '""',
        'a space in quotes': '" "',
        'one quote': '"',
        'three quotes': '"""',
        'an open quote': '"open',
        'a quote at the end': 'open"',
        'a quote within': 'a"b',
        'a quote within quotes': '"a"b"',
        'an escaped quote within, bare': 'a\\"b',
        'an escape of a letter': '"a\\b"',
        'an escape of nothing': '"a\\"',
        'three backslashes': '"\\\\\\"',
        'an escape as JSON has it': '"\\u0041"',
        'a space within': 'a b',
        'a space within quotes': '"a b"',
        'a tab within': 'a\tb',
        'a tab within quotes': '"a\tb"',
        'text behind the quotes': '"a" b',
        'a parameter behind the quotes': '"a";q=1',
        'two keys in quotes': '"a", "b"',
        'two keys in quotes without a space': '"a","b"',
        'two keys, bare': 'a, b',
        'a comma and nothing behind the quotes': '"a",',
        'quotes in quotes': '""a""',
        'a list of structured fields': '("a" "b")',
        'a text of JSON in braces': '{"key":"a"}',
        '256 characters': `${LONG}k`,
        '256 characters in quotes': `"${LONG}k"`,
        '256 characters, of which one is escaped': `"${LONG}\\""`,
        '4,000 characters': 'k'.repeat(4_000),
        'é in Latin-1': 'cl\xe9',
        'é in UTF-8': utf8('clé'),
        'é in quotes': '"cl\xe9"',
        'a no-break space behind': 'key\xa0',
        'a no-break space before': '\xa0key',
        'a no-break space alone': '\xa0',
        'a no-break space behind the quotes': '"key"\xa0',
        'a byte order mark before': utf8('\ufeffkey'),
        'the first byte above ASCII': 'key\x80',
        'the last byte': 'key\xff',
        'an emoji': utf8('🙂'),
        'digits of another script': utf8('١٢٣'),
        'typographic quotes': utf8('“key”'),
        'full-width letters': utf8('ｋｅｙ'),
      }),
      ...of('order', {
        'an empty line': '',
        'an empty text in quotes': '""',
        'a space within': 'a b',
        'an open quote': '"open',
        '256 characters': `${LONG}k`,
        'a byte that is no ASCII': 'key\xe9',
      }),
      ...of('refund', { 'an empty line': '', 'a space within': 'a b', '256 characters': `${LONG}k` }),
      'payment: two lines': ['payment', 'a', 'b'],
      'payment: two lines that are equal': ['payment', 'a', 'a'],
      'payment: two lines, quoted': ['payment', '"a"', '"a"'],
      'payment: two lines, one of them empty': ['payment', 'a', ''],
      'order: two lines': ['order', 'a', 'b'],
      ...of('path', {
        'an empty text in quotes': '%22%22',
        'an open quote': '%22open',
        'a space': '%20',
        'a space within': 'a%20b',
        'a tab': '%09',
        'a line feed behind': 'key%0A',
        'U+0000': '%00',
        DEL: 'key%7F',
        é: 'cl%C3%A9',
        'a no-break space behind': 'key%C2%A0',
        'no UTF-8': '%FF',
        'half an escape': 'key%2',
        '256 characters': `${LONG}k`,
        '256 characters in quotes': `%22${LONG}k%22`,
      }),
    }),
    ...refusedAs<Key>([404, 'resource_not_found'], of('path', { 'longer than any key': 'k'.repeat(513) })),
    ...refusedAs<Key>(NO_VALUE, {
      ...of(
        'path',
        plain(['key?operation=', 'key?operation=pay', 'key?operation=read_order', 'key?operation=toString']),
      ),
      ...of(
        'path',
        plain(['key?operation=CREATE_PAYMENT', 'key?operation=create_payment%00', 'key?operation=__proto__']),
      ),
    }),
    ...refusedAs<Key>(
      [400, 'unknown_parameter'],
      of('path', plain(['key?op=x', 'key?tenant=x', 'key?operation=create_order&operation=create_order'])),
    ),
  ],
  accepted: [
    ['the key of an earlier request, bare', ['order', KEPT], 201, ({ orderId }) => ({ id: orderId })],
    ['the key of an earlier request, quoted', ['order', quoted(KEPT)], 201, ({ orderId }) => ({ id: orderId })],
    ['one visible character', ['order', '!'], 201],
    ['255 characters', ['order', LONG], 201],
    ['255 characters in quotes', ['order', `"${LONG}"`], 201],
    ['255 characters, all of them escaped', ['order', quoted('"'.repeat(255))], 201],
    ['every visible character but the quote', ['order', visible().replace('"', '')], 201],
    ['every visible character in quotes', ['order', quoted(visible())], 201],
    [
      'white space around it, which is ignored',
      ['order', ` \t${quoted(KEPT)}\t `],
      201,
      ({ orderId }) => ({ id: orderId }),
    ],
    ['looked up, in quotes', ['path', encodeURIComponent(quoted(KEPT))], 200, () => ({ status: 'never_seen' })],
    ['looked up, in quotes, of 255 characters', ['path', `%22${LONG}%22`], 200, () => ({ status: 'never_seen' })],
    [
      'looked up, of the operation that it was used for',
      ['path', `${encodeURIComponent(quoted(KEPT))}?operation=create_order`],
      200,
      ({ orderId }) => ({ status: 'succeeded', links: { result: `/orders/${orderId}` } }),
    ],
    [
      'looked up, in quotes, of 255 characters that are all escaped',
      ['path', encodeURIComponent(quoted('"'.repeat(255)))],
      200,
      () => ({ status: 'never_seen' }),
    ],
    ['looked up, with a slash and a colon in it', ['path', 'a%2Fb%3Ac'], 200, () => ({ status: 'never_seen' })],
  ],
})

function visible(): string {
  return String.fromCharCode(...Array.from({ length: 0x7e - 0x20 }, (_, index) => 0x21 + index))
}
