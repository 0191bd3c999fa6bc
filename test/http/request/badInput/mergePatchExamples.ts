/** Valid merge patches: original, patch, result. */
type Example = readonly [original: string, patch: string, result: string]

export const RFC_EXAMPLES: readonly Example[] = [
  ['{"a":"b"}', '{"a":"c"}', '{"a":"c"}'],
  ['{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'],
  ['{"a":"b"}', '{"a":null}', '{}'],
  ['{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'],
  ['{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'],
  ['{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'],
  ['{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'],
  ['{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'],
  ['["a","b"]', '["c","d"]', '["c","d"]'],
  ['{"a":"b"}', '["c"]', '["c"]'],
  ['{"a":"foo"}', 'null', 'null'],
  ['{"a":"foo"}', '"bar"', '"bar"'],
  ['{"e":null}', '{"a":1}', '{"e":null,"a":1}'],
  ['[1,2]', '{"a":"b","c":null}', '{"a":"b"}'],
  ['{}', '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'],
  // The following examples are similar, and are not in the RFC.
  ['{"a":1}', '{}', '{"a":1}'],
  ['"foo"', '{}', '{}'],
  ['null', '{"a":null}', '{}'],
  ['{"a":[1,2,3]}', '{"a":[]}', '{"a":[]}'],
  ['{"a":[1]}', '{"a":[null]}', '{"a":[null]}'],
  ['{"a":[1]}', '{"a":[{"b":null}]}', '{"a":[{"b":null}]}'],
  ['{"a":{"b":{"c":1,"d":2}}}', '{"a":{"b":{"c":null}}}', '{"a":{"b":{"d":2}}}'],
  ['{"a":{"b":1}}', '{"a":{}}', '{"a":{"b":1}}'],
  ['{"a":[1]}', '{"a":{"b":1}}', '{"a":{"b":1}}'],
  ['{"a":0}', '{"a":false}', '{"a":false}'],
  ['{}', '{"constructor":{"prototype":{"a":1}}}', '{"constructor":{"prototype":{"a":1}}}'],
  ['{}', '{"toString":null,"valueOf":{"a":null}}', '{"valueOf":{}}'],
  ['{}', '{"__proto__":{"a":1}}', '{"__proto__":{"a":1}}'],
  ['{"__proto__":{"a":1}}', '{"__proto__":null}', '{}'],
]

/** The examples whose members are texts, sent as `metadata` of an order. */
export const OF_METADATA: readonly Example[] = [
  ['{"a":"b"}', '{"a":"c"}', '{"a":"c"}'],
  ['{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'],
  ['{"a":"b"}', '{"a":null}', '{}'],
  ['{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'],
  ['{"a":"foo"}', 'null', '{}'],
  ['{}', 'null', '{}'],
  ['{"a":"b"}', '{}', '{"a":"b"}'],
  ['{"a":"b"}', '{"c":null}', '{"a":"b"}'],
  ['{"a":"b"}', '{"a":"b"}', '{"a":"b"}'],
  ['{"a":"b"}', '{"a":""}', '{"a":""}'],
  ['{"a":"b"}', '{"":null}', '{"a":"b"}'],
  ['{"a":"b"}', `{"${'k'.repeat(41)}":null}`, '{"a":"b"}'],
  ['{"a":"b"}', '{"constructor":"c","toString":"d"}', '{"a":"b","constructor":"c","toString":"d"}'],
  ['{"constructor":"c","hasOwnProperty":"d"}', '{"constructor":null}', '{"hasOwnProperty":"d"}'],
  ['{"a":"b"}', '{"toString":null,"valueOf":null}', '{"a":"b"}'],
  ['{"a":"b"}', '{"null":"null"}', '{"a":"b","null":"null"}'],
  ['{"a/b":"c"}', '{"a/b":null,"a~1b":"d"}', '{"a~1b":"d"}'],
  ['{"é":"a"}', '{"e\\u0301":"b"}', '{"é":"a","e\\u0301":"b"}'],
]

export type Accepted = {
  readonly name: string
  readonly before?: object
  readonly patch: unknown
  readonly after?: object
  readonly version: number
  readonly type?: string
}

const SOME = { description: 'tea', customer_reference: 'mine', metadata: { a: 'b' } }
const MUG = { sku: 'mug', description: null, quantity: 3, unit_amount: 5 }
const TEA = { sku: 'tea', description: null, quantity: 1, unit_amount: 900 }
const fifty = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`key-${index}`, 'x']))
const { 'key-0': _, ...fortyNine } = fifty

export const OF_ORDERS: readonly Accepted[] = [
  { name: 'an empty patch', before: SOME, patch: {}, version: 0 },
  { name: 'an empty patch with spaces', before: SOME, patch: ' {\n} ', version: 0 },
  { name: 'the present values', before: SOME, patch: SOME, version: 0 },
  { name: 'the removal of absent members', patch: { description: null, customer_reference: null }, version: 0 },
  { name: 'one text', before: SOME, patch: { description: 'mug' }, after: { description: 'mug' }, version: 1 },
  {
    name: 'the removal of a text',
    before: SOME,
    patch: { description: null },
    after: { description: null },
    version: 1,
  },
  {
    name: 'the removal of all removable members',
    before: SOME,
    patch: { description: null, customer_reference: null, metadata: null },
    after: { description: null, customer_reference: null, metadata: {} },
    version: 1,
  },
  { name: 'the word null', before: SOME, patch: { description: 'null' }, after: { description: 'null' }, version: 1 },
  {
    name: 'a text of 500 characters',
    patch: { description: 'x'.repeat(500) },
    after: { description: 'x'.repeat(500) },
    version: 1,
  },
  { name: 'a text of one space', patch: { description: ' ' }, after: { description: ' ' }, version: 1 },
  {
    name: 'an array, which is replaced as a whole',
    before: { lines: [TEA, TEA] },
    patch: { lines: [MUG] },
    after: { lines: [MUG], total_amount: 15 },
    version: 1,
  },
  {
    name: 'an array with one more',
    patch: { lines: [TEA, MUG] },
    after: { lines: [TEA, MUG], total_amount: 915 },
    version: 1,
  },
  {
    name: 'an array in another order',
    before: { lines: [TEA, MUG] },
    patch: { lines: [MUG, TEA] },
    after: { lines: [MUG, TEA] },
    version: 1,
  },
  { name: 'the present lines', patch: { lines: [TEA] }, version: 0 },
  {
    name: 'the present lines, with their members in another order and 1.0 for 1',
    patch: '{"lines":[{"unit_amount":9e2,"quantity":1.0,"sku":"tea"}]}',
    version: 0,
  },
  {
    name: 'a line whose description is removed',
    before: { lines: [{ ...TEA, description: 'green' }] },
    patch: { lines: [{ ...TEA, description: null }] },
    after: { lines: [TEA] },
    version: 1,
  },
  {
    name: 'one of 50 members of metadata replaced by another',
    before: { metadata: fifty },
    patch: { metadata: { 'key-0': null, one: 'more' } },
    after: { metadata: { ...fortyNine, one: 'more' } },
    version: 1,
  },
  {
    name: 'the required charset',
    patch: { description: 'é' },
    after: { description: 'é' },
    version: 1,
    type: 'application/merge-patch+json; charset=utf-8',
  },
  {
    name: 'the charset in quotes and capitals',
    patch: { description: 'é' },
    after: { description: 'é' },
    version: 1,
    type: 'Application/Merge-Patch+JSON;Charset="UTF-8"',
  },
]
