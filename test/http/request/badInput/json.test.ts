import { expect } from 'chai'
import { parseJson } from '../../../../src/http/request/json.ts'
import { type BadRequest, badInput, JSON_TYPE, plain, refusedAs } from './harness.ts'

/** Bodies of POST /orders; a text is sent as UTF-8. */
type Body = string | Uint8Array

const LINES = '"lines":[{"sku":"a","quantity":1,"unit_amount":1}]'
const ORDER = `{"currency":"USD",${LINES}}`
const withMember = (member: string): string => `{"currency":"USD",${LINES},${member}}`
const withText = (literal: string): string => withMember(`"customer_reference":${literal}`)
const withQuantity = (literal: string): string =>
  `{"currency":"USD","lines":[{"sku":"a","quantity":${literal},"unit_amount":1}]}`
const bytesOf = (...parts: (string | number[])[]): Uint8Array =>
  Uint8Array.from(parts.flatMap(part => (typeof part === 'string' ? [...Buffer.from(part)] : part)))
/** A valid body with these bytes inside a text. */
const withBytes = (...bytes: number[]): Uint8Array =>
  bytesOf(`{"currency":"USD",${LINES},"description":"a`, bytes, 'b"}')
const nested = (depth: number, open = '{"a":', end = '{}', close = '}'): string =>
  open.repeat(depth - 1) + end + close.repeat(depth - 1)
const members = (count: number): string => `{${Array.from({ length: count }, (_, index) => `"m${index}":0`).join(',')}}`
const metadata = (count: number): string => withMember(`"metadata":${members(count).replaceAll(':0', ':"0"')}`)
const items = (count: number): string => `{"lines":[${Array.from({ length: count }, () => '0').join(',')}]}`
const each = (make: (input: string) => string, inputs: readonly string[], where: string): Record<string, Body> =>
  Object.fromEntries(Object.entries(plain(inputs, where)).map(([name, input]) => [name, make(input)]))

const request = (body: Body): BadRequest => ({ method: 'POST', path: '/orders', headers: [JSON_TYPE], body })

const NO_JSON = [400, 'invalid_json'] as const
const TWICE = [400, 'duplicate_json_key'] as const
const TOO_MUCH = [400, 'json_limits_exceeded'] as const
const UNFIT = [400, 'validation_failed'] as const

const grammar = refusedAs<Body>(NO_JSON, {
  ...each(
    text => text,
    ['', ' ', '\n', '{', '}', '[', ']', '"', '{}{}', '{} {}', '[] 1', 'null null', '{}x', '{},', ','],
    '',
  ),
  ...each(text => text, ['{"a"}', '{"a":}', '{"a":1,}', '{,"a":1}', '{"a":1 "b":2}', '{"a"::1}', '{"a":1;"b":2}'], ''),
  ...each(
    text => text,
    ['{a:1}', "{'a':1}", '{"a":\'1\'}', '{1:1}', '{null:1}', '{"a" "b"}', '{"a"=1}', '[1,]', '[,1]'],
    '',
  ),
  ...each(text => text, ['[1,,2]', '[1 2]', '[1}', '{"a":1]', 'True', 'NULL', 'nul', 'nulll', 'yes', 'undefined'], ''),
  ...each(
    text => text,
    ['{} // yes', '/* no */ {}', '# {}', '{}\u0000', '\u0000{}', '{\u00a0}', '{\u2028}', '{\u000b}'],
    '',
  ),
  ...each(
    text => text,
    ['<order/>', 'currency=USD', '---\na: 1', '({})', ")]}',\n{}", '{...a}', '`{}`', '{}\u001a'],
    '',
  ),
  'half an object': ORDER.slice(0, ORDER.length / 2),
  'all but the last brace': ORDER.slice(0, -1),
  'an object and a brace': `${ORDER}}`,
  'lines of objects': `${ORDER}\n${ORDER}`,
  'a record separator before': `\u001e${ORDER}`,
})

const numbers = refusedAs<Body>(NO_JSON, {
  ...each(
    withQuantity,
    ['01', '-', '+1', '.1', '1.', '1.e1', '1e', '1e+', '1E-', '0x1', '1n', '1_0', 'NaN', 'Infinity'],
    'quantity ',
  ),
  ...each(withQuantity, ['-Infinity', '--1', '1..0', '1e1.5', '１', '1,5', '1 000', '(1)', '1/1'], 'quantity '),
})

const texts = refusedAs<Body>(NO_JSON, {
  ...each(
    withText,
    ['"', '"a', '"a\\"', '"\\x41"', '"\\u00"', '"\\u00zz"', '"\\u{41}"', '"\\U00000041"', '"\\0"'],
    'text ',
  ),
  ...each(
    withText,
    ["'a'", '"\\\'"', '"a\nb"', '"a\tb"', '"a\rb"', '"a\u0000b"', '"a\u001fb"', '"\\\n"', '"a" "b"'],
    'text ',
  ),
})

const unstorable = refusedAs<Body>(UNFIT, {
  ...each(
    withText,
    ['"\\u0000"', '"a\\u0000"', '"\\ud800"', '"\\udc00"', '"\\udc00\\ud800"', '"\\ud83d\\ud83d"'],
    'text ',
  ),
  ...each(withText, ['"\\ud83dx"', '"\\ud83d\\n"', '"x\\ude00"', '"\\uDBFF"', '"\\ud83d\\u0041"'], 'text '),
  'U+0000 in the name of a member': '{"a\\u0000b":1}',
  'a lone surrogate in the name of a member': '{"\\ud800":1}',
  'U+0000 deep inside': withMember('"metadata":{"a":"\\u0000"}'),
  'a lone surrogate as a name deep inside': withMember('"metadata":{"\\udfff":"a"}'),
})

const encodings = refusedAs<Body>(NO_JSON, {
  'a byte order mark': `\ufeff${ORDER}`,
  'two byte order marks': `\ufeff\ufeff${ORDER}`,
  'a byte order mark behind': `${ORDER}\ufeff`,
  'a byte order mark alone': '\ufeff',
  'UTF-16, little end first': Uint8Array.from(Buffer.from(ORDER, 'utf16le')),
  'UTF-16 with its mark': bytesOf([0xff, 0xfe], [...Buffer.from(ORDER, 'utf16le')]),
  'UTF-16, big end first': Uint8Array.from(Buffer.from(ORDER, 'utf16le').swap16()),
  'UTF-16, big end first, with its mark': bytesOf([0xfe, 0xff], [...Buffer.from(ORDER, 'utf16le').swap16()]),
  'UTF-32': bytesOf([...Buffer.from(ORDER)].flatMap(byte => [byte, 0, 0, 0])),
  'UTF-7': bytesOf('+AHs-+ACI-'),
  'a text in Latin-1': withBytes(0xe9),
  'a text in Windows-1252': withBytes(0x93, 0x94),
  'a slash in two bytes': withBytes(0xc0, 0xaf),
  'a slash in three bytes': withBytes(0xe0, 0x80, 0xaf),
  'U+0000 in two bytes': withBytes(0xc0, 0x80),
  'a quote in two bytes': withBytes(0xc0, 0xa2),
  'a character that is cut off': withBytes(0xe2, 0x82),
  'an emoji that is cut off': withBytes(0xf0, 0x9f, 0x98),
  'the middle of a character alone': withBytes(0x82),
  'a surrogate': withBytes(0xed, 0xa0, 0x80),
  'two surrogates, as CESU-8 has it': withBytes(0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80),
  'a character beyond U+10FFFF': withBytes(0xf4, 0x90, 0x80, 0x80),
  'five bytes for one': withBytes(0xf8, 0x88, 0x80, 0x80, 0x80),
  'a byte that no character has': withBytes(0xff),
  'a byte that no character has behind the object': bytesOf(ORDER, [0xff]),
  gzip: bytesOf([0x1f, 0x8b, 0x08, 0x00]),
  'nothing but zeros': new Uint8Array(64),
})

const twice = refusedAs<Body>(TWICE, {
  'the same value': `{"currency":"USD","currency":"USD",${LINES}}`,
  'another value': `{"currency":"USD","currency":"EUR",${LINES}}`,
  'one of them null': `{"currency":null,"currency":"USD",${LINES}}`,
  'one of them escaped': `{"currency":"USD","c\\u0075rrency":"EUR",${LINES}}`,
  'all letters of one escaped': `{"a":1,"\\u0061":2,${LINES}}`,
  'far apart': `{"currency":"USD",${LINES},"currency":"USD"}`,
  'three times': '{"a":1,"a":2,"a":3}',
  'of an unknown name': withMember('"x":1,"x":1'),
  'of an empty name': '{"":1,"":1}',
  'of a name of Object.prototype': '{"toString":1,"toString":2}',
  'in a line': '{"currency":"USD","lines":[{"sku":"a","sku":"b","quantity":1,"unit_amount":1}]}',
  'an amount in a line': '{"currency":"USD","lines":[{"sku":"a","quantity":1,"unit_amount":1,"unit_amount":2}]}',
  'in the metadata': withMember('"metadata":{"a":"1","a":"2"}'),
  'an emoji, once in escapes': withMember('"metadata":{"🙂":"1","\\ud83d\\ude42":"2"}'),
  'a slash, once escaped': withMember('"metadata":{"a/b":"1","a\\/b":"2"}'),
  'the metadata themselves': withMember('"metadata":{},"metadata":{}'),
  'at the deepest place': nested(15).replace('{}', '{"b":1,"b":2}'),
})

const limits = refusedAs<Body>(TOO_MUCH, {
  'seventeen levels of objects': nested(17),
  'seventeen levels of lists': nested(17, '[', '[]', ']'),
  'seventeen levels of both': nested(17, '[{"a":', '', '}]').slice(0, 200),
  'seventeen levels in the metadata': withMember(`"metadata":${nested(16)}`),
  'a hundred levels': nested(100),
  'thirty thousand open lists': '['.repeat(30_000),
  'ten thousand open objects': '{"a":'.repeat(10_000),
  'sixty thousand open lists': '['.repeat(60_000),
  '1,001 members': members(1_001),
  '5,000 members': members(5_000),
  '1,001 items': items(1_001),
  '30,000 items': items(30_000),
  '600 members and 600 items': `{"b":[${Array.from({ length: 600 }, () => '0').join(',')}],${members(600).slice(1)}`,
})

const unfit = refusedAs<Body>(UNFIT, {
  ...each(
    text => text,
    ['null', 'true', 'false', '0', '-0', '1e400', '""', '"{}"', '[]', '[{}]', '{}', `[${ORDER}]`],
    '',
  ),
  'sixteen levels': nested(16),
  'sixteen levels of lists': nested(16, '[', '[]', ']'),
  'a thousand members': members(1_000),
  'no lines': '{"currency":"USD","lines":[]}',
  '201 lines': `{"currency":"USD","lines":[${Array.from({ length: 201 }, () => '{"sku":"a","quantity":1,"unit_amount":1}').join(',')}]}`,
  '51 members of metadata': metadata(51),
  'an empty name in the metadata': withMember('"metadata":{"":"x"}'),
  '41 characters of a name in the metadata': withMember(`"metadata":{"${'a'.repeat(41)}":"x"}`),
  '501 characters in the metadata': withMember(`"metadata":{"a":"${'x'.repeat(501)}"}`),
  '501 characters of text': withText(`"${'x'.repeat(501)}"`),
  '501 escapes': withText(`"${'\\u0061'.repeat(501)}"`),
  'an empty text': withText('""'),
  'sixty thousand characters of text': withText(`"${'x'.repeat(60_000)}"`),
  'names that differ from the declared ones in their case': `{"Currency":"USD",${LINES}}`,
  'a name with a space behind': `{"currency ":"USD",${LINES}}`,
  'a name that looks like a declared one': `{"сurrency":"USD",${LINES}}`,
  'a number of thirty thousand digits': withQuantity(`1${'0'.repeat(30_000)}`),
  'an exponent of thirty thousand digits': withQuantity(`1e${'9'.repeat(30_000)}`),
  'a fraction of sixty thousand zeros and a one': withQuantity(`1.${'0'.repeat(60_000)}1`),
  'sixty thousand zeros behind the point and a one': withQuantity(`0.${'0'.repeat(60_000)}1`),
  'a number that no double represents': withQuantity('0.99999999999999999999'),
  'a number below every double': withQuantity('1e-400'),
  'a number beyond every double': withQuantity('1e400'),
})

badInput<Body, object>({
  set: 'JSON forms',
  least: 120,
  prepare: async () => ({}),
  request,
  refused: [...grammar, ...numbers, ...texts, ...encodings, ...twice, ...limits, ...unfit, ...unstorable],
  accepted: [
    ['white space wherever it is permitted', ` \t\r\n{ "currency" : "USD" , ${LINES} }\n `, 201],
    ['escapes in the names', `{"\\u0063urrency":"\\u0055SD",${LINES}}`, 201, () => ({ currency: 'USD' })],
    [
      'every escape',
      withText('"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9"'),
      201,
      () => ({ customer_reference: '"\\/\b\f\n\r\té' }),
    ],
    ['an emoji in two escapes', withText('"\\ud83d\\ude42"'), 201, () => ({ customer_reference: '🙂' })],
    ['an emoji in UTF-8', withText('"🙂"'), 201, () => ({ customer_reference: '🙂' })],
    ['a byte order mark within a text', withText('"a\ufeffb"'), 201, () => ({ customer_reference: 'a\ufeffb' })],
    ['noncharacters of Unicode', withText('"\uffff\u{10ffff}"'), 201],
    ['500 characters', withText(`"${'x'.repeat(500)}"`), 201],
    ['50 members of metadata', metadata(50), 201],
    ['names of Object.prototype as metadata', withMember('"metadata":{"toString":"a","constructor":"b"}'), 201],
    [
      'a number of sixty thousand zeros that is one',
      withQuantity(`1.${'0'.repeat(60_000)}`),
      201,
      () => ({ total_amount: 1 }),
    ],
    ['64 KiB, most of it space', ORDER.padEnd(64 * 1024, ' '), 201],
  ],
})

describe('reading a number', () => {
  const FAST_MS = 200
  const timeOf = (literal: string): number => {
    // Processor time is measured, because it is independent of other processes.
    const before = process.cpuUsage()
    parseJson(Buffer.from(`[${literal}]`))
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1_000
  }
  for (const [name, literal] of Object.entries({
    'whose zeros do not end it': `1.${'0'.repeat(60_000)}1`,
    'whose zeros come and go': `1.${`${'0'.repeat(3_000)}1`.repeat(20)}`,
    'that ends in zeros': `1.${'0'.repeat(60_000)}`,
    'that begins with zeros': `0.${'0'.repeat(60_000)}1`,
  }))
    it(`of sixty thousand digits, ${name}, takes less than ${FAST_MS} ms of processor time`, () =>
      expect(Math.min(...Array.from({ length: 3 }, () => timeOf(literal)))).to.be.lessThan(FAST_MS))
})
