import { createHash } from 'node:crypto'
import { checkAnswers } from './checks/answers.ts'
import { checkBooks } from './checks/books.ts'
import { checkManifests, checkReader, checkSubscriptions, checkTopics } from './checks/facts.ts'
import { checkOtherLogs } from './checks/otherLogs.ts'
import { checkReadModels } from './checks/readModels.ts'
import { violation, type Violation } from './checks/violation.ts'
import { actionsWith } from './clients/actions.ts'
import { createClient } from './clients/client.ts'
import { createMarket } from './clients/market.ts'
import { type FactReader, followPages, followStream } from './clients/reader.ts'
import { faults, heal } from './faults.ts'
import { replayParked } from './operator.ts'
import { POISON_TYPE } from './poison.ts'
import { createHistory, type History } from './history.ts'
import type { Caller } from './http.ts'
import { OTHER_LOG } from './instance.ts'
import { EPOCH_MS } from './machine.ts'
import type { Engine } from './postgres.ts'
import { createRandom, type Random } from './random.ts'
import { type Service, startService } from './service.ts'
import { createTimeline, type Timeline } from './timeline.ts'

/** One run of the whole service under one seed: what is planned, what happens, and what is wrong with it. */

export type Planned = {
  readonly number: number
  readonly atMs: number
  readonly kind: 'action' | 'fault'
  readonly name: string
}
export type Options = {
  readonly seed: number
  /** Entries of the plan that are left out: how a failing run is made shorter. */
  readonly without?: ReadonlySet<number>
  /** For how long clients come and things go wrong, in virtual milliseconds. */
  readonly busyMs?: number
}
export type Outcome = {
  readonly seed: number
  readonly plan: readonly Planned[]
  readonly violations: readonly Violation[]
  readonly history: History
  readonly virtualMs: number
  readonly steps: number
}

const INSTANCES = 2
const BUSY_MS = 7_000
const ACTIONS_MIN = 16
const ACTIONS_MAX = 36
const FAULTS_MAX = 5
/** In a long run: one action each so many milliseconds, and one fault. */
const ACTION_EVERY_MS = 6_000
const FAULT_EVERY_MS = 300_000
/** A service that is healed has this time to finish everything (quality.md, I9). */
const FINISH_MS = 10_000
/** Clients go on with their retries for some time after everything is healed. */
const PATIENCE_MS = 40_000
/** The operator notices that the cause of what is parked is mended. */
const OPERATOR_MS = 2_000
const CHECK_EVERY_MS = 500
const SUBSCRIBERS_CHANCE = 0.25
const STREAMS_CHANCE = 0.4
/** An event of a moment ago may still be on its way. */
const ON_ITS_WAY_MS = 2_000
const CALLERS: readonly Caller[] = [
  { tenant: 'acme', subject: 'alice' },
  { tenant: 'acme', subject: 'bob' },
  { tenant: 'globex', subject: 'carol' },
]

const drawn = (random: Random, weights: Readonly<Record<string, readonly [number, unknown]>>): string => {
  const total = Object.values(weights).reduce((sum, [weight]) => sum + weight, 0)
  let left = random.next() * total
  for (const [name, [weight]] of Object.entries(weights)) if ((left -= weight) < 0) return name
  return Object.keys(weights)[0] ?? ''
}

type Names = Readonly<Record<string, readonly [number, unknown]>>

const planOf = (random: Random, names: Names, busyMs: number): readonly Planned[] => {
  const isLong = busyMs > BUSY_MS
  const some = (count: number, kind: Planned['kind'], from: Names) =>
    Array.from({ length: count }, () => ({ atMs: random.next() * busyMs, kind, name: drawn(random, from) }))
  const actions = isLong ? Math.ceil(busyMs / ACTION_EVERY_MS) : random.integer(ACTIONS_MIN, ACTIONS_MAX)
  const wrong = isLong ? Math.ceil(busyMs / FAULT_EVERY_MS) : random.integer(0, FAULTS_MAX)
  return [...some(actions, 'action', names), ...some(wrong, 'fault', faults)]
    .toSorted((a, b) => a.atMs - b.atMs)
    .map((one, number) => ({ ...one, number }))
}

const newestPayment =
  (service: Service) =>
  (tenant: string): string | undefined => {
    const stored = service.log.events.findLast(
      ({ stream, metadata, type }) =>
        stream.startsWith('payment-') && metadata['tenant'] === tenant && type !== POISON_TYPE,
    )
    return stored?.stream.slice('payment-'.length)
  }

type Run = {
  readonly timeline: Timeline
  readonly history: History
  readonly service: Service
  readonly random: Random
}

/** Sets every entry of the plan to its time; resolves with the number of actions that have not ended. */
const begin = (run: Run, plan: readonly Planned[], without: ReadonlySet<number>): (() => number) => {
  const { timeline, history, service, random } = run
  const actions = actionsWith(newestPayment(service), true)
  const market = createMarket()
  let open = 0
  for (const { number, atMs, kind, name } of plan) {
    if (without.has(number)) continue
    const own = random.fork(`${kind}/${number}`)
    if (kind === 'fault') {
      timeline.after(atMs, () => {
        history.count(`fault: ${name}`)
        return faults[name]?.[1]({ service, timeline, history, random: own })
      })
      continue
    }
    open += 1
    const client = createClient({ service, timeline, history, random: own, action: number })
    timeline.after(atMs, () => {
      const action = actions[name]?.[1]
      void action?.({ client, market, caller: own.pick(CALLERS) }).finally(() => (open -= 1))
    })
  }
  return () => open
}

/** Every event that was stored before has had time to arrive everywhere. */
const settledAtOf = ({ timeline }: Run): string => new Date(EPOCH_MS + timeline.nowMs() - ON_ITS_WAY_MS).toISOString()

/** The promises about the state, without regard to the answers of clients. */
const checkState = async (run: Run, readers: readonly FactReader[]): Promise<readonly Violation[]> => {
  const { log, broker, engine } = run.service
  const settledAt = settledAtOf(run)
  return [
    ...checkBooks(log),
    ...(await checkReadModels(log, engine, settledAt)),
    ...checkTopics(log, broker, settledAt),
    ...checkSubscriptions(log, broker, settledAt),
    ...readers.flatMap(reader => checkReader(log, reader, settledAt)),
  ]
}

/** A service that refuses the log of its own tables would serve nothing. */
const checkLogged = (lines: readonly string[]): readonly Violation[] =>
  lines.filter(line => line.includes(OTHER_LOG)).map(line => violation('a healthy ledger is served', line))

/** Looks every half second until nothing is wrong with the state any more, or the time to finish is over. */
const finish = async (run: Run, readers: readonly FactReader[], untilMs: number): Promise<readonly Violation[]> => {
  const { timeline, service, history } = run
  await timeline.run(timeline.nowMs() + ON_ITS_WAY_MS)
  for (;;) {
    await service.database.idle()
    const wrong = await checkState(run, readers)
    if (wrong.length === 0 || timeline.nowMs() >= untilMs)
      return [
        ...wrong,
        ...checkManifests(service.log),
        ...checkAnswers(history, service.log),
        ...(await checkOtherLogs(service.log, service.engine)),
        ...checkLogged(service.faultsLogged),
      ]
    await timeline.run(timeline.nowMs() + CHECK_EVERY_MS)
  }
}

/** Of each tenant one that pages, and in some runs one that streams. */
const startReaders = ({ timeline, history, service, random }: Run, isOver: () => boolean): readonly FactReader[] => {
  const tenants = [...new Map(CALLERS.map(caller => [caller.tenant, caller])).values()]
  const quiet = quietly(history)
  const hasStreams = random.fork('streams').chance(STREAMS_CHANCE)
  return tenants.flatMap((caller, index) =>
    (hasStreams ? [followPages, followStream] : [followPages]).map((follow, kind) => {
      const own = random.fork(`reader/${index}/${kind}`)
      const action = -1 - index * 2 - kind
      return follow({
        client: createClient({ service, timeline, history: quiet, random: own, action }),
        caller,
        isOver,
      })
    }),
  )
}

export const simulate = async (
  engine: Engine,
  { seed, without = new Set(), busyMs = BUSY_MS }: Options,
): Promise<Outcome> => {
  await engine.reset()
  const random = createRandom(seed)
  const timeline = createTimeline(random.fork('timeline'))
  const history = createHistory(timeline.nowMs)
  const hasSubscribers = random.fork('subscribers').chance(SUBSCRIBERS_CHANCE)
  const service = startService({ timeline, random, engine, history, instanceCount: INSTANCES })
  const run = { timeline, history, service, random }
  const plan = planOf(
    random.fork('plan'),
    actionsWith(() => undefined, hasSubscribers),
    busyMs,
  )
  const openActions = begin(run, plan, without)
  let isOver = false
  const readers = startReaders(run, () => isOver)
  await timeline.run(busyMs)
  heal({ service, history })
  await timeline.run(timeline.nowMs() + OPERATOR_MS)
  await replayParked(engine, 'leave')
  await timeline.run(timeline.nowMs() + PATIENCE_MS, () => openActions() === 0)
  const violations = await finish(run, readers, timeline.nowMs() + FINISH_MS)
  isOver = true
  const ids = service.log.events.map(({ id }) => id).join()
  history.note(`the log has ${service.log.events.length} events, ${createHash('sha256').update(ids).digest('hex')}`)
  history.count('take-overs', service.database.takeOvers())
  history.count('lost answers', service.network.lost())
  for (const { machine, feedStates } of service.instances()) {
    for (const { name, state, position, error } of feedStates().values())
      history.note(`${machine.name}: ${name} is ${state} at ${position}${error === undefined ? '' : ` (${error})`}`)
  }
  service.end()
  return { seed, plan, violations, history, virtualMs: timeline.nowMs(), steps: timeline.steps() }
}

/** Readers repeat themselves: only what they have seen is kept, and what is a defect whoever asked. */
const quietly = (history: History): History => ({
  ...history,
  begin: attempt => ({ ...attempt, endedMs: 0 }),
  end: (attempt, answer) => {
    if (answer?.status === 500) history.end(history.begin(attempt), answer)
  },
})
