import { expect } from 'chai'
import fc from 'fast-check'
import { canonicalRecord, leafOf } from '../../src/evidence/record.ts'
import type { Json, JsonObject, StoredEvent } from '../../src/ports.ts'
import { canonical, hashOfLeaf } from './independent.ts'

/** The record of an event as README.md of src/evidence defines it: each member by name, sorted by the slow form. */
const slowRecord = ({ id, type, stream, revision, position, bytes }: StoredEvent): string => {
  const { data, metadata, contentType, createdTicks } = bytes as NonNullable<StoredEvent['bytes']>
  const digits = createdTicks.toString()
  return canonical({
    v: 1,
    id,
    type,
    stream,
    revision: revision.toString(),
    position: position.toString(),
    content_type: contentType,
    created: `${new Date(Number(digits.slice(0, -4))).toISOString().slice(0, -1)}${digits.slice(-4)}Z`,
    ...slowContent('data', data),
    ...slowContent('metadata', metadata),
  })
}

const slowContent = (name: string, bytes: Uint8Array): object => {
  const value = parsed(Buffer.from(bytes).toString('utf8'))
  if (value !== undefined && Buffer.from(JSON.stringify(value)).equals(bytes)) return { [name]: value }
  return { [`${name}_hex`]: Buffer.from(bytes).toString('hex') }
}

const parsed = (text: string): Json | undefined => {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}

const names = fc.oneof(
  fc.constantFrom('a', 'b', 'aa', 'Z', '10', '9', '0', '-1', '01', '4294967295', '__proto__', 'constructor', 'toJSON'),
  fc.constantFrom('é', '€', '\u{1f600}', '\ue000', '\ud800', '"', '\\', '\n', '\0', ''),
  fc.string({ unit: 'binary' }),
)
const primitives = fc.oneof(
  fc.constantFrom('null', 'true', 'false', '0', '-0', '1.0', '1e21', '1e-7', '9007199254740993', '1e400', '0.1', '5E3'),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc.integer().map(String),
  names.map(text => JSON.stringify(text)),
  fc.constantFrom('"\\u0061"', '"\\/"', '"\ud83d"'),
)

/** Texts of JSON values: names twice, spaces and numbers that no double holds among them. */
const { json: texts } = fc.letrec<{ json: string }>(tie => ({
  json: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    primitives,
    fc.array(tie('json'), { maxLength: 4 }).map(items => `[${items.join(',')}]`),
    fc
      .tuple(fc.array(fc.tuple(names, tie('json')), { maxLength: 6 }), fc.constantFrom(',', ',', ',', ', '))
      .map(([members, comma]) => `{${members.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(comma)}}`),
  ),
}))
const canonicalTexts = texts.map(text => JSON.stringify(parsed(text) ?? null))
const contents = fc.oneof(
  { weight: 4, arbitrary: canonicalTexts.map(text => Buffer.from(text)) },
  { weight: 2, arbitrary: texts.map(text => Buffer.from(text)) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 20 }).map(bytes => Buffer.from(bytes)) },
)

const events: fc.Arbitrary<StoredEvent> = fc
  .record({
    id: fc.uuid(),
    type: names,
    stream: names,
    revision: fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
    position: fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
    data: contents,
    metadata: contents,
    contentType: fc.constantFrom('application/json', 'application/octet-stream', ''),
    createdTicks: fc.bigInt({ min: 17_000_000_000_000_000n, max: 18_000_000_000_000_000n }),
  })
  .map(({ data, metadata, contentType, createdTicks, ...event }) => ({
    ...event,
    storedAt: '',
    // As the adapter of the store decodes them.
    data: (parsed(data.toString('utf8')) ?? data.toString('utf8')) as JsonObject,
    metadata: (parsed(metadata.toString('utf8')) ?? metadata.toString('utf8')) as JsonObject,
    bytes: { data, metadata, contentType, createdTicks },
  }))

const anEvent = (data: string, known: unknown): StoredEvent => ({
  id: 'ebf4aeb4-0bd2-4a5e-8f5b-f0a5ec8a3a10',
  type: 'Noted',
  stream: 'note-1',
  revision: 0n,
  position: 7n,
  storedAt: '',
  data: known as JsonObject,
  metadata: {},
  bytes: {
    data: Buffer.from(data),
    metadata: Buffer.from('{}'),
    contentType: 'application/json',
    createdTicks: 17_639_028_001_234_567n,
  },
})

describe('the canonical bytes of an event', () => {
  it('are those of the definition for any content', () => {
    fc.assert(
      fc.property(events, event => {
        expect(canonicalRecord(event).toString('utf8')).to.equal(slowRecord(event))
        expect(leafOf(event).hash).to.deep.equal(hashOfLeaf(Buffer.from(slowRecord(event))))
      }),
      { numRuns: 2_000 },
    )
  })

  it('have every member in its place', () => {
    const event = anEvent('{"b":[1,{"d":null,"c":"é"}],"a":{}}', { b: [1, { d: null, c: 'é' }], a: {} })
    expect(canonicalRecord(event).toString('utf8')).to.equal(
      '{"content_type":"application/json","created":"2025-11-23T13:00:00.1234567Z","data":{"a":{},"b":[1,{"c":"é","d":null}]},' +
        '"id":"ebf4aeb4-0bd2-4a5e-8f5b-f0a5ec8a3a10","metadata":{},"position":"7","revision":"0","stream":"note-1","type":"Noted","v":1}',
    )
  })

  it('follow from the stored bytes where the value beside them differs', () => {
    const text = canonicalRecord(anEvent('{"amount":5}', { amount: 6 })).toString('utf8')
    expect(text).to.contain('"data":{"amount":5}')
    expect(canonicalRecord(anEvent('{"amount": 5}', { amount: 5 })).toString('utf8')).to.contain('"data_hex":"7b22')
  })

  it('are those of the definition for many members', () => {
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`m${(n * 37) % 100}`, n]))
    const event = anEvent(JSON.stringify(many), many)
    expect(canonicalRecord(event).toString('utf8')).to.equal(slowRecord(event))
  })
})
