import { createHash } from 'node:crypto'
import { expect } from 'chai'
import { FACTS_MAX } from '../../../../src/http/resources/events/manifest.ts'
import type { Row, Sql } from '../../../../src/ports.ts'
import { openDatabase } from '../../../../src/adapters/postgres/database.ts'
import { clientOf, newKey } from '../../../support/client.ts'
import { sharedService } from '../../../support/service.ts'
import { caller, startVariant, type Variant } from '../../../support/serviceVariants.ts'
import { createApi } from '../../../../scripts/ledger/consume/api.ts'

/** Positions that the log of a test never has. */
const FIRST = 2n ** 60n
const FACTS = FACTS_MAX * 2 + 5
const LAST = FIRST + BigInt(FACTS) - 1n

describe('GET /events/manifest of a long history', () => {
  const tenant = `long-${newKey().slice(0, 8)}`
  let variant: Variant
  let rows = 0
  const database = async () => openDatabase({ connectionString: (await sharedService()).addresses.postgres })
  const digestOf = (from: bigint, to: bigint): string => {
    const hash = createHash('sha256')
    for (let position = from; position <= to; position++) hash.update(`f${position}\n`)
    return hash.digest('hex')
  }

  before(async () => {
    const own = await database()
    await own.sql(
      `insert into facts_v1 (position, tenant_id, type, subject, at, event)
        select $1::bigint + n, $2::text, 'order.created', 'ord_1', now(), json_build_object('id', 'f' || ($1::bigint + n))
        from generate_series(0, $3::integer - 1) n`,
      [FIRST, tenant, FACTS],
    )
    await own.close()
    variant = await startVariant(await sharedService(), {
      authenticate: async () => ({ ...caller, tenant }),
      services: usual => {
        const sql: Sql = async <R extends Row>(text: string, values?: readonly unknown[]) => {
          const found = await usual.database.sql<R>(text, values)
          rows += found.length
          return text.includes('from checkpoints') ? found.map(row => ({ ...row, position: LAST })) : found
        }
        const projected = { ...usual.database, sql }
        return { ...usual, database: projected, bulk: projected }
      },
    })
  })
  after(async () => {
    await variant.close()
    const own = await database()
    await own.sql('delete from facts_v1 where tenant_id = $1', [tenant])
    await own.close()
  })

  const ask = (query: string) => clientOf(variant.api).get(`/events/manifest?topic=ledger.order.v1${query}`)

  it('reads a bounded number of rows, and names the largest end of a range that has more facts', async () => {
    rows = 0
    const { status, body } = await ask(`&from=0&to=${LAST}`)
    expect([status, body.errors?.[0]?.pointer]).to.deep.equal([400, '?to'])
    const end = FIRST + BigInt(FACTS_MAX) - 1n
    expect(body.errors[0].detail).to.include(String(end))
    expect(rows).to.be.below(20)
    const [item] = (await ask(`&from=0&to=${end}`)).body.items
    expect(item).to.include({ count: FACTS_MAX, sha256: digestOf(FIRST, end) })
    expect(rows).to.be.below(FACTS_MAX + 40)
  })

  it('ends by default after as many facts as it counts, and its ranges add up to the history', async () => {
    const signal = new AbortController().signal
    const api = createApi({ api: variant.api, token: async () => 'none', signal, retryMaxMs: 10_000 })
    const parts = []
    for await (const part of api.manifests('ledger.order.v1', { from: 0n, to: LAST - 2n })) parts.push(part)
    expect(parts.map(({ count }) => count)).to.deep.equal([FACTS_MAX, FACTS_MAX, 3])
    expect(parts.at(-1)?.to).to.equal(LAST - 2n)
    for (const { from, to, sha256 } of parts) expect(sha256).to.equal(digestOf(from < FIRST ? FIRST : from, to))
  })

  it('is read once at a time by one caller', async () => {
    const answers = await Promise.all(Array.from({ length: 6 }, () => ask('')))
    const statuses = answers.map(({ status }) => status)
    expect(statuses).to.include(200).and.to.include(429)
    expect(answers.find(({ status }) => status === 429)?.body.detail).to.include('"manifests"')
  })
})
