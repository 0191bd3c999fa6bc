import type { Refusal } from './cases.ts'

/** Merge patches of an open order, of one that was invoiced and of one that was cancelled. */

type Headers = Readonly<Record<string, string>>
export type Refused = {
  readonly name: string
  /** As JSON, or as the text that is sent. */
  readonly patch: unknown
  readonly refusal: Refusal
  /** The pointer of the first violation. */
  readonly pointer?: string
  readonly headers?: Headers
  readonly of?: 'invoiced' | 'cancelled' | 'deleted' | 'another’s'
}

export const LINE = { sku: 'tea', quantity: 1, unit_amount: 900 }

const INVALID: Refusal = [400, 'validation_failed']
const WRONG_TYPE: Refusal = [415, 'unsupported_media_type']
const WRONG_STATE: Refusal = [409, 'order_state_conflict']
const GONE: Refusal = [404, 'resource_not_found']

const invalid = (name: string, patch: unknown): Refused => ({ name, patch, refusal: INVALID })
const typed = (name: string, type: string, patch: unknown = { description: 'never' }): Refused => ({
  name,
  patch,
  refusal: WRONG_TYPE,
  headers: { 'content-type': type },
})
const keys = (count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`key-${index}`, 'x']))

/** The read-only members of an order, each with a possible value. */
const FORBIDDEN: Readonly<Record<string, unknown>> = {
  id: 'ord_00000000000000000000000000',
  state: 'completed',
  version: 7,
  tenant_id: 'other',
  tenant: 'other',
  created_at: '2026-01-01T00:00:00Z',
  updated_at: '2026-01-01T00:00:00Z',
  created_by: 'root',
  role: 'admin',
  currency: 'USD',
  exponent: 2,
  total_amount: 900,
  invoice_id: 'inv_00000000000000000000000000',
}

const members: readonly Refused[] = [
  ...Object.entries(FORBIDDEN).flatMap(([name, value]) => [
    { ...invalid(`a change of the read-only member ${name}`, { [name]: value }), pointer: `/${name}` },
    { ...invalid(`the removal of the read-only member ${name}`, { [name]: null }), pointer: `/${name}` },
  ]),
  invalid('a forbidden member beside a permitted one', { description: 'never', state: 'open' }),
  invalid('a member that no order has', { colour: 'red' }),
  invalid('the removal of a member that no order has', { colour: null }),
  invalid('a member in another case', { Description: 'never' }),
  invalid('a member with a space behind it', { 'description ': 'never' }),
  invalid('a member by its JSON pointer', { '/description': 'never' }),
  invalid('a member by its path', { 'metadata.a': 'never' }),
  invalid('a member of a line, as if lines had a path', { 'lines[0].quantity': 2 }),
  invalid('a member without a name', { '': 'never' }),
  invalid('__proto__', '{"__proto__":{"state":"open"}}'),
  invalid('constructor', { constructor: { prototype: { state: 'open' } } }),
  invalid('prototype', { prototype: {} }),
  invalid('the order itself', { order: { description: 'never' } }),
]

const texts: readonly Refused[] = ['customer_reference', 'description'].flatMap(name => [
  invalid(`${name} as a number`, { [name]: 1 }),
  invalid(`${name} as a boolean`, { [name]: true }),
  invalid(`${name} as an array`, { [name]: ['a'] }),
  invalid(`${name} as an object`, { [name]: { text: 'a' } }),
  invalid(`${name} as an object that is empty`, { [name]: {} }),
  invalid(`${name} without a character`, { [name]: '' }),
  invalid(`${name} of 501 characters`, { [name]: 'x'.repeat(501) }),
])

const lines: readonly Refused[] = [
  { ...invalid('the removal of lines, which are required', { lines: null }), pointer: '/lines' },
  invalid('no lines', { lines: [] }),
  invalid('lines as an object, by index', { lines: { 0: LINE } }),
  invalid('lines as an object that is empty', { lines: {} }),
  invalid('lines as one line', { lines: LINE }),
  invalid('lines as text', { lines: JSON.stringify([LINE]) }),
  invalid('lines as a number', { lines: 1 }),
  invalid('lines with a null in place of one', { lines: [null] }),
  invalid('lines with a null behind one', { lines: [LINE, null] }),
  invalid('lines within an array', { lines: [[LINE]] }),
  invalid('a line with its changed member only', { lines: [{ quantity: 2 }] }),
  invalid('an empty line', { lines: [{}] }),
  invalid('a line whose amount is removed', { lines: [{ ...LINE, unit_amount: null }] }),
  invalid('a line whose sku is removed', { lines: [{ ...LINE, sku: null }] }),
  invalid('a line with a member that no line has', { lines: [{ ...LINE, currency: 'USD' }] }),
  invalid('a line with its total', { lines: [{ ...LINE, total_amount: 900 }] }),
  invalid('a line with the quantity zero', { lines: [{ ...LINE, quantity: 0 }] }),
  invalid('a line with a fraction as quantity', { lines: [{ ...LINE, quantity: 0.5 }] }),
  invalid('a line with a fraction of a cent', { lines: [{ ...LINE, unit_amount: 9.5 }] }),
  invalid('a line with the amount zero', { lines: [{ ...LINE, unit_amount: 0 }] }),
  invalid('a line with a negative amount', { lines: [{ ...LINE, unit_amount: -1 }] }),
  invalid('a line whose amount is text', { lines: [{ ...LINE, unit_amount: '900' }] }),
  invalid('lines that add up to too much', { lines: [{ ...LINE, quantity: 2, unit_amount: 999_999_999_999 }] }),
  invalid('201 lines', { lines: Array.from({ length: 201 }, () => LINE) }),
]

const metadata: readonly Refused[] = [
  invalid('metadata as text', { metadata: 'a' }),
  invalid('metadata as a number', { metadata: 0 }),
  invalid('metadata as an array', { metadata: ['a'] }),
  invalid('metadata as an array that is empty', { metadata: [] }),
  invalid('metadata that is nested', { metadata: { a: { b: 'c' } } }),
  invalid('metadata that is nested, with a removal', { metadata: { a: { b: null } } }),
  invalid('metadata that is nested, with nothing', { metadata: { a: {} } }),
  invalid('metadata with an array', { metadata: { a: ['b'] } }),
  invalid('metadata with a number', { metadata: { a: 1 } }),
  invalid('metadata with a boolean', { metadata: { a: false } }),
  invalid('metadata with a number beside text', { metadata: { a: 'b', c: 1 } }),
  invalid('metadata with an empty key', { metadata: { '': 'a' } }),
  invalid('metadata with a key of 41 characters', { metadata: { ['k'.repeat(41)]: 'a' } }),
  invalid('metadata with a value of 501 characters', { metadata: { a: 'x'.repeat(501) } }),
  invalid('metadata with 51 keys', { metadata: keys(51) }),
  { ...invalid('metadata with 50 keys beside those of the order', { metadata: keys(50) }), pointer: '/metadata' },
  invalid('metadata with __proto__', '{"metadata":{"__proto__":"a"}}'),
  invalid('the removal of __proto__ in metadata', '{"metadata":{"__proto__":null}}'),
]

const documents: readonly Refused[] = [
  invalid('null, which would remove the order', null),
  invalid('an array', []),
  invalid('an array with a patch in it', [{ description: 'never' }]),
  invalid('a JSON Patch (RFC 6902), said to be a merge patch', [
    { op: 'replace', path: '/description', value: 'never' },
  ]),
  invalid('one operation of a JSON Patch', { op: 'replace', path: '/description', value: 'never' }),
  invalid('text', '"description"'),
  invalid('a number', 1),
  invalid('a boolean', true),
  { name: 'an empty body', patch: '', refusal: [400, 'invalid_json'] },
  { name: 'a space', patch: ' ', refusal: [400, 'invalid_json'] },
  { name: 'half a patch', patch: '{"description":', refusal: [400, 'invalid_json'] },
  { name: 'two patches', patch: '{}{}', refusal: [400, 'invalid_json'] },
  { name: 'undefined', patch: '{"description":undefined}', refusal: [400, 'invalid_json'] },
  {
    name: 'a member twice',
    patch: '{"description":"a","description":null}',
    refusal: [400, 'duplicate_json_key'],
  },
  { name: 'a form', patch: 'description=never', refusal: [400, 'invalid_json'] },
]

const types: readonly Refused[] = [
  typed('as application/json', 'application/json'),
  typed('as application/json, in UTF-8', 'application/json; charset=utf-8'),
  typed('as a JSON Patch', 'application/json-patch+json', [{ op: 'remove', path: '/description' }]),
  typed('as a patch of another kind', 'application/merge-patch'),
  typed('as a merge patch of XML', 'application/merge-patch+xml'),
  typed('as a merge patch and something behind it', 'application/merge-patch+jsonp'),
  typed('as two types', 'application/merge-patch+json, application/json'),
  typed('as any type', '*/*'),
  typed('as a form', 'application/x-www-form-urlencoded', 'description=never'),
  typed('as text', 'text/plain'),
  typed('with an empty type', ''),
  typed('in another charset', 'application/merge-patch+json; charset=utf-16'),
  typed('in Latin-1', 'application/merge-patch+json; charset=iso-8859-1'),
  {
    name: 'said to be compressed',
    patch: {},
    refusal: WRONG_TYPE,
    headers: { 'content-encoding': 'gzip' },
  },
]

const otherOrders: readonly Refused[] = [
  {
    name: 'other lines of an invoiced order',
    patch: { lines: [{ ...LINE, quantity: 2 }] },
    refusal: WRONG_STATE,
    of: 'invoiced',
  },
  {
    name: 'other lines of an invoiced order, and a new description',
    patch: { description: 'never', lines: [LINE, LINE] },
    refusal: WRONG_STATE,
    of: 'invoiced',
  },
  {
    name: 'lines of another sku of an invoiced order',
    patch: { lines: [{ ...LINE, sku: 'mug' }] },
    refusal: WRONG_STATE,
    of: 'invoiced',
  },
  { name: 'the removal of the lines of an invoiced order', patch: { lines: null }, refusal: INVALID, of: 'invoiced' },
  { name: 'the state of an invoiced order', patch: { state: 'open' }, refusal: INVALID, of: 'invoiced' },
  {
    name: 'a description of a cancelled order',
    patch: { description: 'never' },
    refusal: WRONG_STATE,
    of: 'cancelled',
  },
  { name: 'metadata of a cancelled order', patch: { metadata: { a: 'b' } }, refusal: WRONG_STATE, of: 'cancelled' },
  {
    name: 'the removal of a member of a cancelled order',
    patch: { customer_reference: null },
    refusal: WRONG_STATE,
    of: 'cancelled',
  },
  { name: 'the state of a cancelled order', patch: { state: 'open' }, refusal: INVALID, of: 'cancelled' },
  { name: 'a description of a deleted order', patch: { description: 'never' }, refusal: GONE, of: 'deleted' },
  { name: 'an empty patch of a deleted order', patch: {}, refusal: GONE, of: 'deleted' },
  {
    name: 'a description of an order of another tenant',
    patch: { description: 'never' },
    refusal: GONE,
    of: 'another’s',
  },
  { name: 'an empty patch of an order of another tenant', patch: {}, refusal: GONE, of: 'another’s' },
]

export const REFUSED: readonly Refused[] = [
  ...[...members, ...texts, ...lines],
  ...[...metadata, ...documents, ...types, ...otherOrders],
]
