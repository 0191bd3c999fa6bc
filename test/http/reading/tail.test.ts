import { expect } from 'chai'
import { EVENT_STREAMS_POOL_MAX } from '../../../src/compose/databasePools.ts'
import type { Account } from '../../../src/fairness/account.ts'
import { currentAccount, workFor } from '../../../src/fairness/currentAccount.ts'
import { TurnRefused } from '../../../src/fairness/turns.ts'
import { createTail, type Tail } from '../../../src/http/reading/tail.ts'
import type { LiveQueue, News } from '../../../src/http/reading/caughtUpStreams.ts'
import { type Database, type Sql, Unavailable, type World } from '../../../src/ports.ts'
import { useTestPostgres } from '../../feeds/fixtures.ts'
import { createVirtualWorld } from '../../support/virtualWorld.ts'
import { rejectionOf } from '../../support/rejection.ts'
import { eventually } from '../../support/eventually.ts'

const LOOK_MS = 100
const UNLIMITED_MS = 1e12
const never = new AbortController().signal
const accountOf = (tenant: string, caller = 'only') => ({ tenant, caller })
const newsOf = (followed: LiveQueue, waitMs: number): Promise<News | undefined> =>
  followed.next({ waitMs, signal: never }, news => news)

/** A virtual clock that the test advances; sleeps end when their time has come. */
const createClock = () => {
  const sleepers = new Map<() => void, number>()
  let nowMs = 0
  let sleeps = 0
  const world: World = {
    ...createVirtualWorld(),
    monotonicMs: () => nowMs,
    sleep: (timeMs, signal) =>
      new Promise(resolve => {
        sleeps += 1
        const wake = (): void => {
          if (sleepers.delete(wake)) resolve()
        }
        sleepers.set(wake, nowMs + timeMs)
        signal?.addEventListener('abort', wake, { once: true })
        if (signal?.aborted) wake()
      }),
  }
  return {
    world,
    sleeps: () => sleeps,
    pass: async (timeMs: number): Promise<void> => {
      nowMs += timeMs
      for (const [wake, dueMs] of [...sleepers]) if (dueMs <= nowMs) wake()
      await new Promise(resolve => setImmediate(resolve))
    },
  }
}

describe('the tail of the feed of facts', () => {
  const postgres = useTestPostgres()
  let database: Database
  let clock: ReturnType<typeof createClock>
  let tail: Tail
  let statements: string[]
  let position: number

  beforeEach(async () => {
    database = await postgres.ledgerDatabase()
    clock = createClock()
    statements = []
    position = 0
    const sql: Sql = (text, values) => {
      statements.push(text)
      return database.sql(text, values)
    }
    tail = createTail({ database: { sql }, connections: EVENT_STREAMS_POOL_MAX, world: clock.world })
    await database.sql(`insert into checkpoints (name, position, epoch) values ('facts_v1', 0, 1), ('orders_v1', 0, 1)`)
  })

  /** Writes a batch as the projector does: one fact for each of these tenants, and the checkpoint after them. */
  const project = async (...tenants: readonly string[]): Promise<void> => {
    await database.transaction(async sql => {
      for (const tenant of tenants) {
        position += 100
        await sql(
          `insert into facts_v1 (position, tenant_id, type, subject, at, event)
            values ($1, $2, 'order.created', 'ord_x', now(), '{"time":"2026-01-01T00:00:00Z"}')`,
          [position, tenant],
        )
      }
      await sql('update checkpoints set position = $1', [position])
    })
  }
  const arrivalsOf = async (followed: LiveQueue): Promise<bigint[]> => {
    const news = await newsOf(followed, UNLIMITED_MS)
    return news === 'behind' ? [-1n] : (news ?? []).map(({ arrival }) => arrival)
  }
  /** Advances the clock until the promise is settled. */
  const passUntil = async <T>(promise: Promise<T>): Promise<T> => {
    let isSettled = false
    void promise.finally(() => {
      isSettled = true
    })
    await eventually(async () => {
      await clock.pass(LOOK_MS)
      return isSettled
    })
    return promise
  }

  it('is polled once for all event streams and waiting requests', async () => {
    const tenants = Array.from({ length: 10 }, (_, n) => `t${n}`)
    const followed = await Promise.all(
      tenants.flatMap(tenant => Array.from({ length: 20 }, () => tail.follow(accountOf(tenant)))),
    )
    const waiting = Array.from({ length: 100 }, () => tail.waitUntilReached('orders_v1', 1_000n, UNLIMITED_MS))
    const received = Promise.all(followed.map(arrivalsOf))
    const before = clock.sleeps()
    statements = []
    await project(...tenants)
    expect(await passUntil(received)).to.deep.equal(followed.map((_, n) => [BigInt(100 * (Math.floor(n / 20) + 1))]))
    await passUntil(Promise.all(waiting))
    // Each poll is followed by a sleep, and executes one statement for waiting requests and one for event streams.
    expect(statements.length).to.be.at.most(2 * (clock.sleeps() - before + 1))
    for (const one of followed) one.close()
  })

  it('is not polled without event streams and waiting requests', async () => {
    const followed = await tail.follow(accountOf('acme'))
    followed.close()
    await eventually(async () => {
      const before = statements.length
      await clock.pass(LOOK_MS)
      return statements.length === before
    })
    statements = []
    for (let n = 0; n < 5; n += 1) await clock.pass(LOOK_MS)
    expect(statements).to.deep.equal([])
  })

  it('begins at the newest fact for the first follower, also after earlier followers have closed', async () => {
    await project('acme', 'acme')
    const first = await tail.follow(accountOf('acme'))
    first.close()
    await project('acme')
    const second = await tail.follow(accountOf('acme'))
    await project('acme')
    expect(await passUntil(arrivalsOf(second))).to.deep.equal([400n])
    second.close()
  })

  it('has facts that were projected late', async () => {
    await project('acme', 'acme')
    const followed = await tail.follow(accountOf('acme'))
    await database.sql(`insert into late_facts (position, tenant_id, arrival, seq) values (100, 'acme', 200, 1)`)
    expect(await passUntil(arrivalsOf(followed))).to.deep.equal([200n])
    followed.close()
  })

  it('marks a follower that reads nothing as behind, and queues nothing more for it', async () => {
    const followed = await tail.follow(accountOf('acme'))
    statements = []
    await project(...Array.from({ length: 400 }, () => 'acme'))
    await project(...Array.from({ length: 400 }, () => 'acme'))
    await eventually(async () => {
      await clock.pass(LOOK_MS)
      return statements.length > 3
    })
    expect(await newsOf(followed, 0)).to.equal('behind')
    await project('acme')
    expect(await passUntil(arrivalsOf(followed))).to.deep.equal([BigInt(position)])
    followed.close()
  })

  it('continues after an outage of the database without a gap', async () => {
    let isUnavailable = false
    const sql: Sql = (text, values) =>
      isUnavailable ? Promise.reject(new Unavailable('database', { effect: 'none' })) : database.sql(text, values)
    const own = createTail({ database: { sql }, connections: EVENT_STREAMS_POOL_MAX, world: clock.world })
    const followed = await own.follow(accountOf('acme'))
    isUnavailable = true
    await project('acme')
    for (let n = 0; n < 5; n += 1) await clock.pass(LOOK_MS)
    isUnavailable = false
    expect(await passUntil(arrivalsOf(followed))).to.deep.equal([100n])
    followed.close()
  })

  it('is polled for all tenants, not in the account of the one whose request began it', async () => {
    const accounts: unknown[] = []
    const sql: Sql = (text, values) => {
      accounts.push(currentAccount())
      return database.sql(text, values)
    }
    const own = createTail({ database: { sql }, connections: EVENT_STREAMS_POOL_MAX, world: clock.world })
    const followed = await workFor(accountOf('acme'), () => own.follow(accountOf('acme')))
    await project('acme')
    expect(await passUntil(arrivalsOf(followed))).to.deep.equal([100n])
    expect(new Set(accounts)).to.deep.equal(new Set([undefined]))
    followed.close()
  })

  it('reads the history of streams by turns of their tenants, and each in its own account', async () => {
    const begun: (string | undefined)[] = []
    const ends: (() => void)[] = []
    const sql: Sql = () => {
      begun.push(currentAccount()?.tenant)
      return new Promise(resolve => ends.push(() => resolve([])))
    }
    const own = createTail({ database: { sql }, connections: EVENT_STREAMS_POOL_MAX, world: clock.world })
    const read = (account: Account, signal = never): Promise<unknown> =>
      own.read({ text: 'select', values: [] }, { account, signal })
    const greedy = Array.from({ length: 100 }, (_, n) => read(accountOf('greedy', `caller-${n % 10}`)))
    const honest = read(accountOf('honest'))
    const gone = new AbortController()
    const left = read(accountOf('left'), gone.signal)
    gone.abort()
    expect(await rejectionOf(left)).to.be.instanceOf(TurnRefused)
    while (ends.length > 0) {
      for (const end of ends.splice(0)) end()
      await new Promise(resolve => setImmediate(resolve))
    }
    await Promise.all([...greedy, honest])
    expect(begun.indexOf('honest')).to.be.within(0, EVENT_STREAMS_POOL_MAX - 1)
    expect(new Set(begun)).to.deep.equal(new Set(['greedy', 'honest']))
  })

  it('ends a wait after its time', async () => {
    await passUntil(tail.waitUntilReached('orders_v1', 10n, 1_000))
  })
})
