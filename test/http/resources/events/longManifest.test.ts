import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { expect } from 'chai'
import fc from 'fast-check'
import { FACTS as FACTS_NAME } from '../../../../src/commands/manifests.ts'
import { acquireCheckpoint, moveCheckpoint } from '../../../../src/feeds/checkpoints.ts'
import { createLedgerTables } from '../../../../src/feeds/ledgerTables.ts'
import { FACTS_MAX } from '../../../../src/http/resources/events/manifest.ts'
import type { Row, Sql } from '../../../../src/ports.ts'
import { openDatabase } from '../../../../src/adapters/postgres/database.ts'
import { clientOf, newKey } from '../../../support/client.ts'
import { newDatabase } from '../../../support/postgres.ts'
import { removeFolder } from '../../../support/folders.ts'
import { sharedService, temporaryDirectory } from '../../../support/service.ts'
import { caller, startVariant, type Variant } from '../../../support/serviceVariants.ts'
import { createApi } from '../../../../scripts/ledger/consume/api.ts'
import { fileOf } from '../../../../scripts/ledger/consume/copy.ts'
import { verifyOverHttp } from '../../../../scripts/ledger/consume/verify.ts'

/** Positions that the log of a test never has. */
const FIRST = 2n ** 60n
const FACTS = FACTS_MAX * 2 + 5
/** Another tenant's fact stands between each two. */
const STEP = 2n
const LAST = FIRST + STEP * BigInt(FACTS - 1)
const TOPIC = 'ledger.order.v1'
const EPOCH = 1n
const CUTS = 6
/** The fixture is one statement of many rows. */
const STATEMENT_MAX_MS = 60_000
const RUNS = 4

describe('GET /events/manifest of a long history', () => {
  const tenant = `long-${newKey().slice(0, 8)}`
  let variant: Variant
  let rows = 0
  const positions = Array.from({ length: FACTS }, (_, n) => FIRST + STEP * BigInt(n))
  const positionsIn = (from: bigint, to: bigint): readonly bigint[] =>
    positions.filter(position => position >= from && position <= to)
  const digestOf = (from: bigint, to: bigint): string => {
    const hash = createHash('sha256')
    for (const position of positionsIn(from, to)) hash.update(`f${position}\n`)
    return hash.digest('hex')
  }

  before(async () => {
    // A database of its own: the shared service ends when its tables are ahead of its log.
    const postgres = await newDatabase()
    const database = openDatabase({ connectionString: postgres, statementTimeoutMs: STATEMENT_MAX_MS })
    await createLedgerTables(database)
    await acquireCheckpoint(database.sql, FACTS_NAME, EPOCH)
    await moveCheckpoint(database.sql, [FACTS_NAME], LAST, EPOCH)
    await database.sql(
      `insert into facts_v1 (position, tenant_id, type, subject, at, event)
        select position, owner, 'order.created', 'ord_1', now(), json_build_object('id', 'f' || position, 'source', '/test',
          'type', 'order.created', 'subject', 'ord_1', 'partitionkey', 'ord_1', 'position', position::text,
          'sequence', lpad(position::text, 20, '0'), 'tenantid', owner, 'data', json_build_object())
        from (select $1::bigint + n as position, case n % $4 when 0 then $2::text else $2::text || '-other' end as owner
          from generate_series(0, $4 * $3::integer - 1) n) facts`,
      [FIRST, tenant, FACTS, Number(STEP)],
    )
    await database.close()
    const service = await sharedService()
    const other = { ...service, addresses: { ...service.addresses, postgres } }
    variant = await startVariant(other, {
      authenticate: async () => ({ ...caller, tenant }),
      services: usual => {
        const sql: Sql = async <R extends Row>(text: string, values?: readonly unknown[]) => {
          const actual = await usual.bulk.sql<R>(text, values)
          rows += actual.length
          return actual
        }
        return { ...usual, bulk: { sql } }
      },
    })
  })
  after(() => variant?.close())

  const ask = (query: string) => clientOf(variant.api).get(`/events/manifest?topic=${TOPIC}${query}`)

  it('reads a bounded number of rows, and names the largest end of a range that has more facts', async () => {
    rows = 0
    const { status, body } = await ask(`&from=0&to=${LAST}`)
    expect([status, body.errors?.[0]?.pointer]).to.deep.equal([400, '?to'])
    const end = FIRST + STEP * BigInt(FACTS_MAX) - 1n
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
    for await (const part of api.manifests(TOPIC, { from: 0n, to: LAST - 2n * STEP })) parts.push(part)
    expect(parts.map(({ count }) => count)).to.deep.equal([FACTS_MAX, FACTS_MAX, 3])
    expect(parts.at(-1)?.to).to.equal(LAST - 2n * STEP)
    for (const { from, to, sha256 } of parts) expect(sha256).to.equal(digestOf(from, to))
  })

  it('counts any range as a count of all its facts does, or names the first end with too many: adjacent ranges lose none', () => {
    const cuts = fc.uniqueArray(fc.bigInt({ min: FIRST, max: LAST }), { minLength: CUTS, maxLength: CUTS })
    return fc.assert(
      fc.asyncProperty(cuts, async drawn => {
        const ends = [...drawn.toSorted((a, b) => (a < b ? -1 : 1)), LAST]
        let from = 0n
        let counted = 0
        for (const to of ends) {
          while (from <= to) {
            const target = positionsIn(from, to)
            const requested = await ask(`&from=${from}&to=${to}`)
            const isTooLong = target.length > FACTS_MAX
            const end = isTooLong ? (target[FACTS_MAX] ?? 0n) - 1n : to
            expect(requested.status, requested.text).to.equal(isTooLong ? 400 : 200)
            if (isTooLong) expect(requested.body.errors[0].detail).to.include(`may end at ${end}.`)
            const { body } = isTooLong ? await ask(`&from=${from}&to=${end}`) : requested
            const count = positionsIn(from, end).length
            expect(body.items[0]).to.include({ count, sha256: digestOf(from, end), to_position: String(end) })
            counted += count
            from = end + 1n
          }
        }
        expect(counted).to.equal(FACTS)
      }),
      { numRuns: RUNS },
    )
  })

  it('is verified by consume in several parts, which name the one fact that a copy lacks', async () => {
    const folder = await temporaryDirectory()
    const signal = new AbortController().signal
    const api = createApi({ api: variant.api, token: async () => 'none', signal, retryMaxMs: 60_000 })
    const state = { from: 'http' as const, topics: [TOPIC], cursor: null, position: String(LAST), group: 'test' }
    const fact = (position: bigint) => ({
      ...{ id: `f${position}`, source: '/test', type: 'order.created', subject: 'ord_1', partitionkey: 'ord_1' },
      ...{ position: String(position), sequence: String(position).padStart(20, '0'), tenantid: tenant, data: {} },
    })
    const verifyCopyOf = async (copied: readonly bigint[]) => {
      await writeFile(fileOf(folder, TOPIC), copied.map(position => `${JSON.stringify(fact(position))}\n`).join(''))
      return verifyOverHttp(folder, state, api)
    }
    try {
      const whole = await verifyCopyOf(positions)
      expect(whole.ok).to.equal(true)
      expect(whole.topics[0]?.ranges.map(({ had }) => had.count)).to.deep.equal([FACTS_MAX, FACTS_MAX, 5])
      const lost = positions[FACTS_MAX + 7] ?? 0n
      const { ok, topics } = await verifyCopyOf(positions.filter(position => position !== lost))
      expect([ok, topics[0]?.ranges.map(({ agrees }) => agrees)]).to.deep.equal([false, [true, false, true]])
      expect([topics[0]?.missing.map(({ id }) => id), topics[0]?.surplus]).to.deep.equal([[`f${lost}`], []])
    } finally {
      await removeFolder(folder)
    }
  })

  it('is read once at a time by one caller', async () => {
    const answers = await Promise.all(Array.from({ length: 6 }, () => ask('')))
    const statuses = answers.map(({ status }) => status)
    expect(statuses).to.include(200).and.to.include(429)
    expect(answers.find(({ status }) => status === 429)?.body.detail).to.include('"manifests"')
  })
})
