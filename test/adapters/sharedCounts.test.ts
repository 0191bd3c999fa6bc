import { expect } from 'chai'
import { createSharedCounts, type SharedCounts } from '../../src/adapters/rateLimiter/sharedCounts.ts'
import type { Counted } from '../../src/ports.ts'

/** A database that several instances count in: `answer` settles its oldest statement. */
const createCountingDatabase = () => {
  let used = 0
  const waiting: (() => void)[] = []
  const statements: number[] = []
  const spend = (_key: string, points: number): Promise<Counted> =>
    new Promise(resolve => {
      statements.push(points)
      waiting.push(() => resolve({ used: (used += points), resetMs: 60_000 }))
    })
  const answer = async (): Promise<void> => {
    waiting.shift()?.()
    // The instance sends its next statement in microtasks.
    await new Promise(setImmediate)
  }
  return { spend, answer, statements, used: () => used }
}

/** A clock that the test moves; it calls what is due, in order. */
const createTestClock = () => {
  let nowMs = 0
  const due = new Map<() => void, number>()
  return {
    nowMs: () => nowMs,
    later: (ms: number, work: () => void) => {
      due.set(work, nowMs + ms)
      return () => void due.delete(work)
    },
    pass: (ms: number): void => {
      nowMs += ms
      for (const [work, atMs] of [...due]) if (atMs <= nowMs && due.delete(work)) work()
    },
  }
}

const of = (requests: number) => ({ requests, windowSeconds: 60 })
const A_THOUSAND = of(1_000)
/** Two per cent of the limit. */
const AHEAD_MAX = 20
const SPEND_AFTER_MS = 100
const COUNT_AGE_MAX_MS = 250

describe('the counts that instances share', () => {
  let database: ReturnType<typeof createCountingDatabase>
  let counts: SharedCounts
  let clock: ReturnType<typeof createTestClock>
  const countMany = (requests: number, limit = A_THOUSAND) =>
    Promise.all(Array.from({ length: requests }, () => counts.count('key', limit).then(({ used }) => used)))
  /** The first request always waits for the database. */
  const countFirst = async (limit = A_THOUSAND): Promise<void> => {
    const first = counts.count('key', limit)
    await database.answer()
    expect((await first).used).to.equal(database.used())
  }
  const upTo = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, index) => from + index)

  beforeEach(() => {
    database = createCountingDatabase()
    clock = createTestClock()
    counts = createSharedCounts(database.spend, clock)
  })

  it('need one statement for requests that come while another is under way', async () => {
    const numbers = countMany(5, of(10))
    await database.answer()
    await database.answer()
    expect([await numbers, database.statements]).to.deep.equal([
      [1, 2, 3, 4, 5],
      [1, 4],
    ])
  })

  it('let requests pass without a statement far from the limit, and have them in the database soon after', async () => {
    await countFirst()
    expect(await countMany(AHEAD_MAX)).to.deep.equal(upTo(2, 21))
    expect(database.statements).to.deep.equal([1])
    clock.pass(SPEND_AFTER_MS)
    await database.answer()
    expect([database.statements, database.used()]).to.deep.equal([[1, AHEAD_MAX], 21])
  })

  it('count no request twice that comes while those before it are being counted', async () => {
    await countFirst()
    await countMany(3)
    clock.pass(SPEND_AFTER_MS)
    expect(await countMany(2)).to.deep.equal([5, 6])
    await database.answer()
    clock.pass(SPEND_AFTER_MS)
    await database.answer()
    expect([database.statements, database.used()]).to.deep.equal([[1, 3, 2], 6])
  })

  it('make a request wait when two per cent of the limit are not in the database yet', async () => {
    await countFirst()
    await countMany(AHEAD_MAX)
    const next = counts.count('key', A_THOUSAND)
    await database.answer()
    expect([(await next).used, database.statements]).to.deep.equal([22, [1, AHEAD_MAX + 1]])
  })

  it('make a request wait too when those two per cent are being counted', async () => {
    await countFirst()
    await countMany(AHEAD_MAX)
    clock.pass(SPEND_AFTER_MS)
    const next = counts.count('key', A_THOUSAND)
    await database.answer()
    await database.answer()
    expect([(await next).used, database.statements]).to.deep.equal([22, [1, AHEAD_MAX, 1]])
  })

  for (const microtasks of Array.from({ length: 12 }).keys())
    it(`count a request that comes ${microtasks} microtasks after the answer to the one before it`, async () => {
      const first = counts.count('key', of(10))
      const answered = database.answer()
      for (let left = microtasks; left > 0; left -= 1) await Promise.resolve()
      const second = counts.count('key', of(10))
      await answered
      await database.answer()
      expect([(await first).used, (await second).used]).to.deep.equal([1, 2])
    })

  it('make every request wait from half of the limit on', async () => {
    void database.spend('key', 499)
    await database.answer()
    await countFirst()
    const over = counts.count('key', A_THOUSAND)
    await database.answer()
    expect([(await over).used, database.statements]).to.deep.equal([501, [499, 1, 1]])
  })

  it('make a request wait when others may have counted many since the last statement', async () => {
    await countFirst()
    clock.pass(COUNT_AGE_MAX_MS)
    const late = counts.count('key', A_THOUSAND)
    await database.answer()
    expect([(await late).used, database.statements]).to.deep.equal([2, [1, 1]])
  })

  it('make every request of a small limit wait', async () => {
    await countFirst(of(49))
    const second = counts.count('key', of(49))
    await database.answer()
    expect([(await second).used, database.statements]).to.deep.equal([2, [1, 1]])
  })

  it('have every request in the database when they are closed', async () => {
    await countFirst()
    await countMany(4)
    const closed = counts.close()
    await database.answer()
    await closed
    expect(database.used()).to.equal(5)
  })
})
