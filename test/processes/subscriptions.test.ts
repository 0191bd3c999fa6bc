import { expect } from 'chai'
import { orderEntity, subscriptionEntity } from '../../src/commands/entities.ts'
import { createLedger, handle, type Ledger } from '../../src/commands/commandHandler.ts'
import { type Allowance } from '../../src/commands/subscriptions/permission.ts'
import { newSubscriptionId } from '../../src/commands/subscriptions/ids.ts'
import { observeProjector } from '../../src/compose/observedProjector.ts'
import { topicNamesOf } from '../../src/commands/subscriptions/topicNames.ts'
import { insertDeadLetters, deadLettersOfKey, requestForDeadLetters } from '../../src/feeds/deadLetters.ts'
import { positionOf } from '../../src/feeds/checkpoints.ts'
import { longestStuck } from '../../src/feeds/subscriptionCheckpoints.ts'
import { projectorOf } from '../../src/feeds/projector.ts'
import { readModels } from '../../src/feeds/readModels.ts'
import { type FeedState, runFeeds } from '../../src/feeds/feedLoop.ts'
import { type Database, type FactBus, type FactMessage, type TopicSettings, Unavailable } from '../../src/ports.ts'
import { subscriptionsFeed } from '../../src/processes/subscriptions/subscriptionsFeed.ts'
import type { SubscriptionId } from '../../streams/ids.ts'
import type { SubscriptionCommand } from '../../streams/subscription/index.ts'
import { context } from '../commands/fixtures.ts'
import { createReports, fillLog, type Reports, useTestPostgres } from '../feeds/fixtures.ts'
import { eventually } from '../support/eventually.ts'
import { HURRIED_TIMES, hurriedWorld } from '../support/hurriedWorld.ts'
import type { MemoryLog } from '../support/memoryStore.ts'
import { createOrder, createSubscription, id as orderId } from '../streams/samples.ts'

const IDLE = 300
const IDLE_STATEMENTS_A_SECOND_MAX = 30
const WATCHED_MS = 2_000
const BOTH = ['order.created', 'invoice.paid']
const TOPIC_BYTES = 4_096
const CONFIRMATION_DAYS = 90
const DAY_MS = 24 * 60 * 60 * 1000

/**
 * A bus that records its calls, refuses those on dead topics, and delays the work on topics while `slow` is set. `gone`:
 * topics that were deleted, and are there again once they are ensured.
 */
const createBus = () => {
  const sent: FactMessage[] = []
  const dead = new Set<string>()
  const gone = new Set<string>()
  const unsendable = new Set<string>()
  const calls: string[] = []
  const ensured: TopicSettings[] = []
  const slow: { hasAuthorizer: boolean; until?: PromiseWithResolvers<void> } = { hasAuthorizer: true }
  const check = (topics: readonly string[]): void => {
    refuse(topics.find(topic => dead.has(topic) || gone.has(topic)))
  }
  const refuse = (refused: string | undefined): void => {
    if (refused === undefined) return
    calls.push(`refuse ${refused}`)
    throw new Unavailable('fact bus', { effect: 'unknown', cause: new Error('This topic is dead.') })
  }
  const bus: FactBus = {
    ensureTopics: async topics => {
      await slow.until?.promise
      for (const { topic } of topics) gone.delete(topic)
      check(topics.map(({ topic }) => topic))
      calls.push(`ensure ${topics[0]?.topic}`)
      ensured.push(...topics)
    },
    publish: async messages => {
      check(messages.map(({ topic }) => topic))
      refuse(messages.find(({ topic }) => unsendable.has(topic))?.topic)
      sent.push(...messages)
    },
    deleteTopics: async ([topic]) => {
      await slow.until?.promise
      calls.push(`delete ${topic}`)
    },
    grantReading: async (principal, { groupPrefix }) => {
      calls.push(`grant ${principal} ${groupPrefix}`)
      return slow.hasAuthorizer ? 'granted' : 'not_enforced'
    },
    revokeReading: async ({ groupPrefix }) => void calls.push(`revoke ${groupPrefix}`),
    close: async () => undefined,
  }
  return { bus, sent, dead, gone, unsendable, calls, ensured, slow }
}

describe('the delivery of subscriptions', () => {
  const postgres = useTestPostgres()
  let log: MemoryLog
  let database: Database
  let ledger: Ledger
  let statements: number
  let broker: ReturnType<typeof createBus>
  let allowance: Allowance
  /** Called during a check, after it has found out the allowance. */
  let beforeAnswer: () => Promise<void>
  let reports: Reports
  let stop: AbortController
  let running: Promise<unknown>

  beforeEach(async () => {
    log = await fillLog(4)
    database = await postgres.ledgerDatabase()
    const world = hurriedWorld()
    ledger = createLedger(log.open(), world)
    broker = createBus()
    allowance = { allowed: true }
    beforeAnswer = async () => undefined
    reports = createReports()
    stop = new AbortController()
    statements = 0
    const counted: Database = { ...database, sql: (text, values) => ((statements += 1), database.sql(text, values)) }
    const observed = observeProjector()
    const report = (state: FeedState): void => {
      reports.report(state)
      observed.reported(state)
    }
    const dependencies = { store: log.open(), database, world, report }
    const quiet = { info: () => undefined, warn: () => undefined, error: () => undefined }
    const feed = subscriptionsFeed({
      database: counted,
      bus: broker.bus,
      topicBytes: TOPIC_BYTES,
      confirmationMs: CONFIRMATION_DAYS * DAY_MS,
      needsAuthorizer: true,
      ledger,
      isStillAllowed: async () => {
        const actual = allowance
        await beforeAnswer()
        return actual
      },
      logger: quiet,
      projector: observed,
    })
    const projector = projectorOf(
      { database, store: dependencies.store, world },
      readModels,
      () => undefined,
      observed.changed,
    )
    running = Promise.all([
      runFeeds('projector', [projector], dependencies, stop.signal),
      runFeeds('subscriptions', [feed], dependencies, stop.signal),
    ])
  })
  afterEach(async () => {
    stop.abort()
    broker.slow.until?.resolve()
    await running
  })

  const send = async (id: SubscriptionId, command: SubscriptionCommand): Promise<void> => {
    const { ok } = await handle(ledger, subscriptionEntity, id, { command, context: context() })
    expect(ok).to.equal(true)
  }
  const subscribe = async (types = BOTH, principal: string | null = null): Promise<SubscriptionId> => {
    const id = newSubscriptionId(ledger.world)
    await send(id, { ...createSubscription, types, principal, claim: null })
    return id
  }
  const sentTo = (id: string) => broker.sent.filter(({ topic }) => topic === topicNamesOf(id).topic)
  const idsOf = (messages: readonly FactMessage[]) => messages.map(({ headers }) => headers['ce_id'] ?? '')
  const factIds = async (types = BOTH): Promise<string[]> => {
    const rows = await database.sql<{ id: string }>(
      `select event->>'id' as id from facts_v1 where type = any($1::text[]) order by position`,
      [types],
    )
    return rows.map(({ id }) => id)
  }
  /** Appends more facts. */
  const fillMore = async (): Promise<void> => {
    const command = { ...createOrder, claim: null }
    await handle(ledger, orderEntity, orderId('ord', 77), { command, context: context(), load: 'assume_empty' })
  }
  const delivered = (id: string, types = BOTH): Promise<true> =>
    eventually(async () => {
      const target = await factIds(types)
      return target.length > 0 && sentTo(id).length === target.length
    })

  it('sends the facts of the subscribed types, in the order of the log', async () => {
    const [both, paid] = [await subscribe(), await subscribe(['invoice.paid'])]
    await delivered(both)
    await delivered(paid, ['invoice.paid'])
    expect(idsOf(sentTo(both))).to.deep.equal(await factIds())
    expect(idsOf(sentTo(paid))).to.deep.equal(await factIds(['invoice.paid']))
  })

  it(`runs few statements for ${IDLE} idle subscriptions`, async () => {
    const ids = await Promise.all(Array.from({ length: IDLE }, () => subscribe(['invoice.paid'])))
    for (const id of ids) await delivered(id, ['invoice.paid'])
    await ledger.world.sleep(WATCHED_MS)
    const before = statements
    await ledger.world.sleep(WATCHED_MS)
    const aSecond = (statements - before) / (WATCHED_MS / 1_000)
    process.stdout.write(`      ${aSecond} statements a second\n`)
    expect(aSecond).to.be.below(IDLE_STATEMENTS_A_SECOND_MAX)
  })

  it('continues for the others while the topic of one fails, which catches up later', async () => {
    const failing = await subscribe()
    await delivered(failing)
    broker.dead.add(topicNamesOf(failing).topic)
    await send(failing, {
      type: 'ReplaySubscription',
      from_position: 0n,
      from_time: null,
      to_position: 1n,
      claim: null,
    })
    await eventually(() => broker.calls.includes(`refuse ${topicNamesOf(failing).topic}`))
    await delivered(await subscribe())
    const target = await factIds()
    expect(sentTo(failing)).to.have.length(target.length)
    broker.dead.clear()
    await eventually(() => sentTo(failing).length === 2 * target.length)
    expect(idsOf(sentTo(failing))).to.deep.equal([...target, ...target])
    const ensured = broker.calls.filter(call => call === `ensure ${topicNamesOf(failing).topic}`)
    expect(ensured, 'the topic is created again if it is missing').to.have.length.above(1)
  })

  it('creates the topics of several subscriptions again that were deleted together', async () => {
    const ids = [await subscribe(), await subscribe(), await subscribe()]
    for (const id of ids) await delivered(id)
    for (const id of ids) broker.gone.add(topicNamesOf(id).topic)
    const before = (await factIds()).length
    await fillMore()
    await eventually(async () => (await factIds()).length > before)
    for (const id of ids) await delivered(id)
  })

  const park = (id: string) =>
    insertDeadLetters(database.sql, [
      {
        ...{
          delivery: id,
          position: 1n,
          key: 'ord_1',
          stream: 'order-ord_1',
          revision: 0n,
          event_id: 'e',
          type: 'OrderCreated',
        },
        ...{ tenant_id: 'acme', reason: 'It is too large.', attempts: 10, first_failed_at: '2026-01-01T00:00:00Z' },
      },
    ])
  const lettersTo = (id: string) => broker.sent.filter(({ topic }) => topic === topicNamesOf(id).deadLetterTopic)

  it('announces the dead letters of all others while the dead letter topic of one fails, and its own afterwards', async () => {
    const [failing, other] = [await subscribe(), await subscribe()]
    for (const id of [failing, other]) await delivered(id)
    const { topic, deadLetterTopic } = topicNamesOf(failing)
    broker.dead.add(deadLetterTopic)
    await park(failing)
    await park(other)
    await eventually(() => lettersTo(other).length === 1)
    await eventually(() => broker.calls.includes(`refuse ${deadLetterTopic}`))
    await fillMore()
    await delivered(other)
    expect(reports.states.flatMap(({ error }) => (error === undefined ? [] : [error]))).to.deep.equal([])
    broker.dead.clear()
    await eventually(() => lettersTo(failing).length === 1)
    await delivered(failing)
    const ensured = broker.calls.filter(call => call === `ensure ${topic}`)
    expect(ensured, 'the topic is created again if it is missing').to.have.length.above(1)
    expect(lettersTo(other)).to.have.length(1)
  })

  it('is stuck since its last delivery, although its topics are provided again and again', async () => {
    const stuck = async () => longestStuck(database.sql, await positionOf(database.sql, 'facts_v1'))
    const id = await subscribe()
    await delivered(id)
    expect(await stuck()).to.equal(0)
    const { topic } = topicNamesOf(id)
    const provided = (): number => broker.calls.filter(call => call === `ensure ${topic}`).length
    const before = provided()
    broker.unsendable.add(topic)
    await handle(ledger, orderEntity, orderId('ord', 900), { command: createOrder, context: context() })
    // After the pause of a failure, which is 5 s; Postgres measures real time.
    await eventually(() => provided() > before)
    expect(await stuck()).to.be.above(4 / HURRIED_TIMES)
    broker.unsendable.clear()
    await eventually(async () => (await stuck()) === 0)
  })

  it('continues while topics of others are being created and deleted', async () => {
    const [flowing, leaving] = [await subscribe(), await subscribe()]
    await delivered(flowing)
    await delivered(leaving)
    const done = Promise.withResolvers<void>()
    broker.slow.until = done
    const coming = await Promise.all(Array.from({ length: 9 }, () => subscribe()))
    await send(leaving, { type: 'DeleteSubscription' })
    const rows = async (): Promise<number> => (await database.sql(`select 1 from subscriptions_v1`)).length
    await eventually(async () => (await rows()) === coming.length + 2)
    const before = (await factIds()).length
    await fillMore()
    await eventually(async () => (await factIds()).length > before)
    await delivered(flowing)
    expect(coming.flatMap(sentTo), 'facts to topics that do not exist yet').to.deep.equal([])
    expect(broker.calls.filter(call => call.startsWith('delete'))).to.deep.equal([])
    done.resolve()
    for (const id of coming) await delivered(id)
    await eventually(() => broker.calls.includes(`delete ${topicNamesOf(leaving).topic}`))
    for (const id of coming)
      expect(
        broker.calls.filter(call => call === `ensure ${topicNamesOf(id).topic}`),
        'once each',
      ).to.have.length(1)
  })

  it('ends when the permission is withdrawn, revokes the ACLs, and records the reason', async () => {
    const id = await subscribe(BOTH, 'books')
    await delivered(id)
    expect(broker.calls).to.include(`grant books ${topicNamesOf(id).groupPrefix}`)
    allowance = { allowed: false, reason: 'scope_revoked' }
    await eventually(() => broker.calls.includes(`revoke ${topicNamesOf(id).groupPrefix}`))
    const stopped = await eventually(async () => {
      const { row } = await ledger.aggregates.load(subscriptionEntity, id)
      return row?.state === 'stopped' && row
    })
    expect(stopped).to.include({ stop_reason: 'scope_revoked' })
    const count = sentTo(id).length
    await send(id, { type: 'ReplaySubscription', from_position: 0n, from_time: null, to_position: 1n, claim: null })
    await ledger.world.sleep(WATCHED_MS)
    expect(sentTo(id)).to.have.length(count)
  })

  it('continues when its holder resumes it between a check that it fails and the stop', async () => {
    const id = await subscribe()
    await delivered(id)
    let resumed = false
    beforeAnswer = async () => {
      if (resumed) return
      resumed = true
      allowance = { allowed: true }
      await send(id, { type: 'PauseSubscription' })
      await send(id, { type: 'ResumeSubscription' })
    }
    allowance = { allowed: false, reason: 'scope_revoked' }
    await eventually(() => resumed)
    const before = (await factIds()).length
    await fillMore()
    await eventually(async () => (await factIds()).length > before)
    await delivered(id)
    expect(log.events.map(({ type }) => type)).not.to.include('SubscriptionStopped')
  })

  it('waits while the broker has no authorizer, if the subscription names a principal', async () => {
    broker.slow.hasAuthorizer = false
    const [held, open] = [await subscribe(BOTH, 'books'), await subscribe()]
    await eventually(() => broker.calls.includes(`grant books ${topicNamesOf(held).groupPrefix}`))
    await delivered(open)
    await fillMore()
    await delivered(open)
    expect(sentTo(held)).to.deep.equal([])
    broker.slow.hasAuthorizer = true
    await delivered(held)
  })

  it('grants and sends nothing for a subscription that never had the permission', async () => {
    allowance = { allowed: false, reason: 'tenant_suspended' }
    const id = await subscribe(BOTH, 'books')
    await eventually(async () => (await ledger.aggregates.load(subscriptionEntity, id)).row?.state === 'stopped')
    await ledger.world.sleep(WATCHED_MS)
    expect([broker.sent, broker.calls.filter(call => call.startsWith('grant'))]).to.deep.equal([[], []])
  })

  const seenOn = async (id: string) =>
    (
      await database.sql(
        'select subject, client, seen_on::text from subscription_creators where subscription_id = $1',
        [id],
      )
    )[0]
  const today = (): string => new Date().toISOString().slice(0, 10)
  const setSeen = (id: string, daysAgo: number) =>
    database.sql('update subscription_creators set seen_on = current_date - $2::integer where subscription_id = $1', [
      id,
      daysAgo,
    ])
  const stateOf = async (id: SubscriptionId) => (await ledger.aggregates.load(subscriptionEntity, id)).row

  it('stops when its creator was not seen for the confirmation period, and goes on where it was', async () => {
    const id = await subscribe(BOTH, 'books')
    await delivered(id)
    const { subject, client } = context()
    expect(await seenOn(id)).to.deep.equal({ subject, client, seen_on: today() })
    await setSeen(id, CONFIRMATION_DAYS - 1)
    await ledger.world.sleep(WATCHED_MS)
    expect(await stateOf(id)).to.include({ state: 'active' })
    await setSeen(id, CONFIRMATION_DAYS + 2)
    await eventually(async () => (await stateOf(id))?.state === 'stopped')
    expect(await stateOf(id)).to.include({ stop_reason: 'creator_not_seen' })
    await eventually(() => broker.calls.includes(`revoke ${topicNamesOf(id).groupPrefix}`))
    const before = (await factIds()).length
    await fillMore()
    await eventually(async () => (await factIds()).length > before)
    await setSeen(id, 0)
    await send(id, { type: 'ResumeSubscription' })
    await delivered(id)
    expect(idsOf(sentTo(id)), 'each fact once, in order').to.deep.equal(await factIds())
  })

  it('counts a creator as seen today whose row is missing, as after a restore of Postgres', async () => {
    const id = await subscribe()
    await delivered(id)
    await database.sql('delete from subscription_creators')
    await eventually(async () => (await seenOn(id)) !== undefined)
    expect(await seenOn(id)).to.include({ seen_on: today() })
    expect(await stateOf(id)).to.include({ state: 'active' })
    await send(id, { type: 'DeleteSubscription' })
    await eventually(async () => (await seenOn(id)) === undefined)
  })

  it('limits the bytes of its topics, also of those that were created with another limit', async () => {
    const id = await subscribe()
    await delivered(id)
    const { topic, deadLetterTopic } = topicNamesOf(id)
    const limits = () => broker.ensured.map(one => [one.topic, one.retentionBytes])
    const expected = [topic, deadLetterTopic].map(name => [name, TOPIC_BYTES])
    expect(limits()).to.deep.equal(expected)
    await database.sql('update subscription_deliveries set topic_bytes = 1')
    await fillMore()
    await eventually(() => broker.ensured.length > expected.length)
    expect(limits()).to.deep.equal([...expected, ...expected])
    await delivered(id)
    const ensured = broker.ensured.length
    await ledger.world.sleep(WATCHED_MS)
    expect(broker.ensured.length).to.equal(ensured)
  })

  it('deletes the topics of a deleted subscription', async () => {
    const id = await subscribe()
    await delivered(id)
    await send(id, { type: 'DeleteSubscription' })
    await eventually(() => broker.calls.includes(`delete ${topicNamesOf(id).topic}`))
    await eventually(async () => (await database.sql('select 1 from subscription_deliveries')).length === 0)
  })

  it('parks the key of an event that the facts projection has parked, until that is replayed', async () => {
    const order = log.events.find(({ type }) => type === 'OrderCreated')
    if (order === undefined) return expect.fail('there is no order')
    const key = order.stream.slice(order.stream.indexOf('-') + 1)
    const revision = BigInt(log.events.filter(({ stream }) => stream === order.stream).length - 1)
    const poison = { id: '00000000-0000-8000-a000-00000000dead', type: 'OrderVanished', data: {} }
    await log.open().append(order.stream, [{ ...poison, metadata: order.metadata }], revision)
    const other = log.events.find(({ type, stream }) => type === 'OrderCreated' && stream !== order.stream)
    await eventually(async () => (await deadLettersOfKey(database.sql, 'facts_v1', key)).length === 1)
    // A later event, so that the facts projection has passed the parked one.
    const [parked] = await deadLettersOfKey(database.sql, 'facts_v1', key)
    const position = (parked?.position ?? 0n) + 1n
    await database.sql(
      `insert into facts_v1 (position, tenant_id, type, subject, at, event) select $1, tenant_id, type, subject, at, event
        from facts_v1 where position = $2`,
      [position, other?.position],
    )
    await database.sql(`update checkpoints set position = $1 where name = 'facts_v1'`, [position])
    const [id, foreign] = [await subscribe(), await subscribe(['invoice.paid'])]
    await eventually(async () => (await deadLettersOfKey(database.sql, id, key)).length === 1)
    await delivered(foreign, ['invoice.paid'])
    const reached = 'select 1 from subscription_deliveries where subscription_id = $1 and position >= $2'
    await eventually(async () => (await database.sql(reached, [foreign, position])).length > 0)
    expect(await deadLettersOfKey(database.sql, foreign, key), 'parked for other types').to.deep.equal([])
    await eventually(() => broker.sent.some(({ topic }) => topic === topicNamesOf(id).deadLetterTopic))
    const count = sentTo(id).length

    await requestForDeadLetters(database.sql, { delivery: id, key }, 'replay')
    await eventually(async () => (await deadLettersOfKey(database.sql, id, key))[0]?.requested === null)
    expect(sentTo(id), 'before the replay of the projection').to.have.length(count)

    await database.sql(
      `insert into facts_v1 (position, tenant_id, type, subject, at, event) select $1, tenant_id, type, subject, at, event
        from facts_v1 where position = $2`,
      [parked?.position, order.position],
    )
    await database.sql(`delete from parked_facts where delivery = 'facts_v1'`)
    await requestForDeadLetters(database.sql, { delivery: id, key }, 'replay')
    await eventually(async () => (await deadLettersOfKey(database.sql, id, key)).length === 0)
    expect(sentTo(id)).to.have.length(count + 1)
    expect(sentTo(id).at(-1)?.key).to.equal(key)
  })

  it('continues for others when an event of one cannot be decoded, and for that one after it is discarded', async () => {
    const id = await subscribe()
    await delivered(id)
    const stream = `subscription-${id}`
    const created = log.events.find(event => event.stream === stream)
    const poison = { id: '00000000-0000-8000-a000-00000000beef', type: 'SubscriptionVanished', data: {} }
    await log.open().append(stream, [{ ...poison, metadata: created?.metadata ?? {} }], 0n)
    await eventually(async () => (await deadLettersOfKey(database.sql, 'subscriptions_v1', id)).length === 1)
    await fillMore()
    const other = await subscribe()
    await delivered(other)
    expect(reports.states.flatMap(({ error }) => (error === undefined ? [] : [error]))).to.deep.equal([])
    expect(sentTo(id).length).to.be.lessThan((await factIds()).length)
    await requestForDeadLetters(database.sql, { delivery: 'subscriptions_v1', key: id }, 'discard')
    await delivered(id)
  })
})
