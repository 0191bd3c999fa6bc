import { createHash } from 'node:crypto'
import { expect } from 'chai'
import { MANIFEST_TOPICS } from '../../projections/factTopics.ts'
import { countFacts } from '../../src/commands/factCounts.ts'
import type { Row, Sql } from '../../src/ports.ts'
import { rejectionOf } from '../support/rejection.ts'

const FACTS = 25_000
const PREFIXES = ['ord', 'inv', 'pay', 'op', 'man'] as const

/** Facts at every third position. */
const facts = Array.from({ length: FACTS }, (_, n) => ({
  position: BigInt(3 * n),
  subject: `${PREFIXES[n % PREFIXES.length]}_x`,
  id: `id-${n}`,
}))

describe('counting facts', () => {
  let batches: number[] = []
  const sql: Sql = async <R extends Row>(_: string, values: readonly unknown[] = []): Promise<R[]> => {
    const [after, to, limit] = values as [bigint, bigint, number]
    const rows = facts.filter(({ position }) => position > after && position <= to).slice(0, limit)
    batches.push(rows.length)
    return rows as object[] as R[]
  }
  const expected = (prefix: string, from: bigint, to: bigint) => {
    const ids = facts.filter(one => one.subject.startsWith(prefix) && one.position >= from && one.position <= to)
    const sha256 = createHash('sha256')
    for (const { id } of ids) sha256.update(`${id}\n`)
    return { count: ids.length, sha256: sha256.digest('hex') }
  }
  beforeEach(() => {
    batches = []
  })

  it('counts any range in batches, each fact once, for every topic in one pass', async () => {
    const counted = await countFacts(sql, { topics: MANIFEST_TOPICS, from: 0n, to: BigInt(3 * FACTS) })
    expect(counted).to.deep.equal(
      MANIFEST_TOPICS.map((topic, n) => ({ topic, ...expected(`${PREFIXES[n]}_`, 0n, BigInt(3 * FACTS)) })),
    )
    expect(Math.max(...batches)).to.be.at.most(10_000)
    expect(batches.reduce((sum, size) => sum + size, 0)).to.equal(FACTS)
  })

  it('includes both ends of the range, with and without a fact there', async () => {
    for (const [from, to] of [
      [0n, 0n],
      [1n, 2n],
      [3n, 3n],
      [3n, 30_000n],
      [29_999n, 60_001n],
      [74_997n, 80_000n],
    ] as const) {
      const [counted] = await countFacts(sql, { topics: ['ledger.invoice.v1'], from, to })
      expect(counted, `${from} to ${to}`).to.deep.equal({ topic: 'ledger.invoice.v1', ...expected('inv_', from, to) })
    }
  })

  it('stops when the request is aborted', async () => {
    const gone = new AbortController()
    const stopping: Sql = async <R extends Row>(text: string, values?: readonly unknown[]): Promise<R[]> => {
      gone.abort(new Error('gone'))
      return sql<R>(text, values)
    }
    const range = { topics: MANIFEST_TOPICS, from: 0n, to: BigInt(3 * FACTS), signal: gone.signal }
    expect(await rejectionOf(countFacts(stopping, range))).to.have.property('message', 'gone')
    expect(batches).to.have.length(1)
  })
})
