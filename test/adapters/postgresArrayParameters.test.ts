import { expect } from 'chai'
import fc from 'fast-check'
import { Client, type DatabaseError } from 'pg'
import { withBinaryArrays } from '../../src/adapters/postgres/arrayParameters.ts'
import { newDatabase } from '../support/postgres.ts'

/** Array parameters: their binary form means the same to Postgres as the text form that `pg` sends by itself. */

const INT8_MAX = 2n ** 63n - 1n

/** By type: values that have a binary form. */
const EXACT: Readonly<Record<string, readonly unknown[]>> = {
  text: ['', 'plain', 'with "quotes", {braces}, back\\slash and NULL', 'é€😀', 'NULL', '\n\t', 'half \ud83d'],
  json: ['null', '{"a": [1, "x\\"y"], "b":  null}', '"é€😀"', '123456789012345678901234567890.5'],
  bigint: [0n, 1n, -1n, INT8_MAX, -INT8_MAX, 2n ** 53n + 1n],
  integer: [0, -1, 2_147_483_647, -2_147_483_647],
  int: [7],
  timestamptz: [
    '2026-01-02T03:04:05.678Z',
    '1999-12-28T23:59:59.9Z',
    '2000-01-01T00:00:00Z',
    '1000-01-01T00:00:00.001Z',
    '2024-02-29T00:00:00Z',
    '2026-12-31T23:59:59.999Z',
  ],
  bytea: [Buffer.alloc(0), Buffer.of(0, 255, 92, 34), Buffer.alloc(300, 7).subarray(1)],
  uuid: ['00000000-0000-4000-8000-000000000001', 'ebf4aeb4-0bd2-4a5e-8f5b-f0a5ec8a3a10'],
}

/** By type: arrays that keep the text form. Postgres reads some of them, and refuses the others. */
const LEFT_TO_POSTGRES: readonly (readonly [string, readonly unknown[]])[] = [
  ['text', [1, true]],
  ['bigint', ['12', 13]],
  ['bigint', [INT8_MAX + 1n]],
  ['bigint', ['twelve']],
  ['integer', [2 ** 31]],
  ['integer', [1.5]],
  ['timestamptz', ['2026-02-31T00:00:00Z']],
  ['timestamptz', ['2023-02-29T00:00:00Z']],
  ['timestamptz', ['2026-04-31T23:59:59.999Z']],
  ['timestamptz', ['2026-01-02T03:04:05.678901+02:00', 'infinity']],
  ['timestamptz', ['0000-01-01T00:00:00Z']],
  ['timestamptz', ['2026-01-01T25:00:00Z']],
  ['text', []],
  ['bytea', ['\\x00ff']],
  ['uuid', ['EBF4AEB4-0BD2-4A5E-8F5B-F0A5EC8A3A10', '{ebf4aeb4-0bd2-4a5e-8f5b-f0a5ec8a3a10}']],
  ['uuid', ['ebf4aeb40bd24a5e8f5bf0a5ec8a3a10', 'no uuid']],
]

const statement = (type: string): string =>
  `select $1::${type}[]::text as stored, array_length($1::${type}[], 1) as length`
const binaryOf = (type: string, values: readonly unknown[]): unknown => withBinaryArrays(statement(type), [values])[0]

describe('array parameters of Postgres', () => {
  let client: Client

  before(async () => {
    client = new Client({ connectionString: await newDatabase() })
    await client.connect()
    await client.query('set timezone = utc')
  })
  after(() => client.end())

  /** The row, or the SQLSTATE of the refusal. */
  const answerTo = async (type: string, parameter: unknown): Promise<unknown> =>
    client.query(statement(type), [parameter]).then(
      ({ rows }) => rows[0] as unknown,
      (error: DatabaseError) => error.code,
    )
  const expectSame = async (type: string, values: readonly unknown[]): Promise<void> => {
    const parameter = binaryOf(type, values)
    expect(parameter, `${type}: ${String(values)}`).to.be.instanceOf(Buffer)
    expect(await answerTo(type, parameter)).to.deep.equal(await answerTo(type, values))
  }

  for (const [type, values] of Object.entries(EXACT))
    it(`of ${type} have a binary form with the meaning of the text form, nulls included`, async () => {
      await expectSame(type, values)
      await expectSame(type, [null, ...values, undefined])
      await expectSame(type, [null])
    })

  it('of any text and any time with milliseconds have the meaning of the text form', async () => {
    const text = fc.string({ unit: 'binary' }).filter(some => !some.includes('\0'))
    const time = fc
      .date({ min: new Date('1000-01-01T00:00:00Z'), max: new Date('2999-12-31T00:00:00Z'), noInvalidDate: true })
      .map(date => date.toISOString())
    const some = <T>(one: fc.Arbitrary<T>) => fc.array(fc.option(one), { minLength: 1 })
    await fc.assert(
      fc.asyncProperty(some(text), some(time), async (texts, times) => {
        await expectSame('text', texts)
        await expectSame(
          'json',
          texts.map(one => JSON.stringify(one)),
        )
        await expectSame('timestamptz', times)
      }),
      { numRuns: 50 },
    )
  })

  it('that the binary form cannot represent exactly keep the text form', () => {
    for (const [type, values] of LEFT_TO_POSTGRES) expect(binaryOf(type, values), type).to.equal(values)
  })

  it('are refused with the same SQLSTATE in both forms', async () => {
    for (const [type, values] of [
      ['text', ['a\0b']],
      ['json', ['{']],
    ] as const) {
      const code = await answerTo(type, values)
      expect(code).to.be.a('string')
      expect(await answerTo(type, binaryOf(type, values)), `${type}: ${values.join()}`).to.equal(code)
    }
  })

  it('without a cast, and other values, are left as they are', () => {
    const values = [['a'], 'b', 3n, null]
    expect(withBinaryArrays('select $1, $2::text, $3::bigint, $4::text[]', values)).to.deep.equal(values)
  })
})
