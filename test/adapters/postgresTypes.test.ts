import { expect } from 'chai'
import { openDatabase } from '../../src/adapters/postgres/database.ts'
import type { Database } from '../../src/ports.ts'
import { newDatabase } from '../support/postgres.ts'

describe('times from Postgres', () => {
  let database: Database
  before(async () => {
    database = openDatabase({ connectionString: await newDatabase() })
  })
  after(() => database.close())

  it('have milliseconds, and are left as they are where RFC 3339 has no form for them', async () => {
    const times = {
      '0001-01-01 00:00:00+00': '0001-01-01T00:00:00.000Z',
      '2026-01-02 03:04:05.6+00': '2026-01-02T03:04:05.600Z',
      '2026-01-02 03:04:05.06+00': '2026-01-02T03:04:05.060Z',
      '2026-01-02 03:04:05.006+00': '2026-01-02T03:04:05.006Z',
      '2026-01-02 03:04:05.0006+00': '2026-01-02T03:04:05.000Z',
      '9999-12-31 23:59:59.999999+00': '9999-12-31T23:59:59.999Z',
      '10000-01-01 00:00:00+00': '10000-01-01 00:00:00+00',
      '0044-03-15 12:00:00+00 BC': '0044-03-15 12:00:00+00 BC',
      infinity: 'infinity',
      '-infinity': '-infinity',
    }
    const read = `select text::timestamptz as at from unnest($1::text[]) with ordinality as given (text, n) order by n`
    const rows = await database.sql<{ at: string }>(read, [Object.keys(times)])
    expect(rows.map(({ at }) => at)).to.deep.equal(Object.values(times))
  })
})
