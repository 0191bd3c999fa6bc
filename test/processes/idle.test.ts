import { expect } from 'chai'
import { subscriptionEntity } from '../../src/commands/entities.ts'
import { createLedger, handle, type Ledger } from '../../src/commands/commandHandler.ts'
import { newSubscriptionId } from '../../src/commands/subscriptions/ids.ts'
import { createCleanupStack } from '../../src/lib/cleanupStack.ts'
import { startFeeds } from '../../src/compose/feeds.ts'
import type { Config } from '../../src/settings/config.ts'
import type { Database, FactBus, Sql, World } from '../../src/ports.ts'
import { context } from '../commands/fixtures.ts'
import { useTestPostgres } from '../feeds/fixtures.ts'
import { createSubscription } from '../streams/samples.ts'
import { eventually } from '../support/eventually.ts'
import { createMemoryLog, type MemoryLog } from '../support/memoryStore.ts'
import { createSleepers } from '../support/sleepers.ts'
import { createVirtualWorld } from '../support/virtualWorld.ts'

const MINUTE_MS = 60_000
const SETTLED_LOOPS = 50
/** Each loop looks for forgotten work twice in a minute. A poll of 100 ms alone sleeps 600 times. */
const SLEEPS_MAX = 150
/** Exports that expire or are withdrawn, files to be deleted. A poll of 1 s alone sends 60. */
const STATEMENTS_MAX = 40
/** Every 1.5 s, of all subscriptions together. */
const CHECKS = 40
/** The least pause between two rounds, and the wait for the next. */
const SLEEPS_OF_A_ROUND = 2
/** The position, the rows, dead letters. */
const STATEMENTS_OF_A_ROUND = 3

/** A world whose sleeps end in the order of their times. `settled` resolves when all work waits for a sleep. */
const createSteppedWorld = (settled: () => Promise<void>) => {
  const virtual = createVirtualWorld()
  const sleepers = createSleepers(virtual)
  let slept = 0
  const sleep: World['sleep'] = (timeMs, signal) => {
    slept += 1
    return sleepers.sleep(timeMs, signal)
  }
  return {
    ...virtual,
    sleep,
    slept: () => slept,
    pass: async (timeMs: number): Promise<void> => {
      const endMs = virtual.monotonicMs() + timeMs
      for (await settled(); sleepers.wakeNext(endMs); await settled());
      virtual.pass(endMs - virtual.monotonicMs())
    },
  }
}

/** Counts the statements of the feeds, without the heartbeats of their leases. */
const counting = (database: Database) => {
  let sent = 0
  let open = 0
  const counted = async <T>(work: () => Promise<T>): Promise<T> => {
    sent += 1
    open += 1
    try {
      return await work()
    } finally {
      open -= 1
    }
  }
  const sqlOf =
    (sql: Sql): Sql =>
    (text, values) =>
      counted(() => sql(text, values))
  const watched: Database = {
    ...database,
    sql: sqlOf(database.sql),
    transaction: (work, timeoutMs) => counted(() => database.transaction(sql => work(sqlOf(sql)), timeoutMs)),
  }
  return {
    database: watched,
    sent: () => sent,
    /** No statement is under way, and none follows from the last one. */
    settled: async (): Promise<void> => {
      for (let quiet = 0; quiet < SETTLED_LOOPS; quiet = open === 0 ? quiet + 1 : 0)
        await new Promise(resolve => setImmediate(resolve))
    },
  }
}

const bus: FactBus = {
  ensureTopics: async () => undefined,
  publish: async () => undefined,
  deleteTopics: async () => undefined,
  grantReading: async () => 'granted',
  revokeReading: async () => undefined,
  close: async () => undefined,
}
const logger = { info: () => undefined, warn: () => undefined, error: () => undefined }

describe('the feeds of an idle service', () => {
  const postgres = useTestPostgres()
  let memory: MemoryLog
  let cleanup: ReturnType<typeof createCleanupStack>

  /** The sleeps and statements of a minute, a minute after the feeds are live. */
  const idleMinute = async (roles: Config['roles'], prepare: (ledger: Ledger) => Promise<unknown>) => {
    const statements = counting(await postgres.ledgerDatabase())
    const world = createSteppedWorld(statements.settled)
    memory = createMemoryLog(world.now)
    const store = memory.open()
    cleanup = createCleanupStack(error => expect.fail(String(error)))
    const settings = {
      roles,
      manifestEveryMs: 60 * MINUTE_MS,
      kafka: {} as never,
      openSigning: 'off' as const,
      subscriptionTopicBytes: 1,
      subscriptionConfirmationMs: 90 * 24 * 60 * MINUTE_MS,
    }
    const services = { database: statements.database, store, logger, schemaBaseUrl: 'https://ledger.example' }
    const ledger = createLedger(store, world)
    await prepare(ledger)
    const feeds = await startFeeds(settings, { ...services, ledger }, cleanup, () => bus)
    await eventually(
      () => feeds.size > 0 && [...feeds.values()].every(({ state }) => state === 'live' || state === 'off'),
    )
    await world.pass(MINUTE_MS)
    const before = { slept: world.slept(), sent: statements.sent() }
    await world.pass(MINUTE_MS)
    return { slept: world.slept() - before.slept, sent: statements.sent() - before.sent }
  }
  afterEach(() => cleanup.run())

  it('wait for events, and do not look for work many times a minute', async () => {
    const { slept, sent } = await idleMinute(['projector', 'worker', 'publisher'], async () => undefined)
    expect(slept).to.be.at.most(SLEEPS_MAX)
    expect(sent).to.be.at.most(STATEMENTS_MAX)
  })

  it('look at a subscription as often as its permission is checked', async () => {
    const { slept, sent } = await idleMinute(['projector', 'worker', 'publisher'], ledger =>
      handle(ledger, subscriptionEntity, newSubscriptionId(ledger.world), {
        command: createSubscription,
        context: context(),
        load: 'assume_empty',
      }),
    )
    expect(slept).to.be.at.most(SLEEPS_MAX + CHECKS * SLEEPS_OF_A_ROUND)
    expect(sent).to.be.within(CHECKS, STATEMENTS_MAX + CHECKS * STATEMENTS_OF_A_ROUND)
  })
})
