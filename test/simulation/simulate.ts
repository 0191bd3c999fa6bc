import { createHash } from 'node:crypto'
import type { Violation } from './checks/violation.ts'
import { actionsWith } from './clients/actions.ts'
import { createClient } from './clients/client.ts'
import { createMarket } from './clients/market.ts'
import { CALLERS, TENANT_CALLERS } from './clients/callers.ts'
import { type FactReader, followPages, followStream } from './clients/reader.ts'
import { faults, heal } from './faults.ts'
import { finish, type Run } from './finishing.ts'
import { rebuildTables, tendParked } from './operator.ts'
import { POISON_TYPE } from './poison.ts'
import { createHistory, type History, quietly } from './history.ts'
import type { Engine } from './postgres.ts'
import { createRandom, type Random } from './random.ts'
import { checkRestored } from './restored.ts'
import { type Service, startService } from './service.ts'
import { createTimeline } from './timeline.ts'

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
const FAULTS_MAX = 6
/** In a long run: one action each so many milliseconds, and one fault. */
const ACTION_EVERY_MS = 6_000
const FAULT_EVERY_MS = 300_000
const SUBSCRIBERS_CHANCE = 0.25
const STREAMS_CHANCE = 0.4
const REBUILD_CHANCE = 0.08
const REBUILD_MAX_MS = 20_000
const DUPLICATES_CHANCE = 0.15
const DUPLICATES_MAX_MS = 4_000
const DUPLICATED = 0.3
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
        if (faults[name]?.[1]({ service, timeline, history, random: own })) history.count(`fault: ${name}`)
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

/** Of each tenant one that pages, and in some runs one that streams. */
const startReaders = ({ timeline, history, service, random }: Run, isOver: () => boolean): readonly FactReader[] => {
  const quiet = quietly(history)
  const hasStreams = random.fork('streams').chance(STREAMS_CHANCE)
  return TENANT_CALLERS.flatMap((caller, index) =>
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

/** In some runs an operator has every table made anew from the log. */
const planRebuild = ({ timeline, history, service, random }: Run, busyMs: number): void => {
  const own = random.fork('rebuild')
  if (!own.chance(REBUILD_CHANCE)) return
  timeline.after(own.next() * busyMs, () => {
    history.count('fault: rebuild')
    history.note('an operator ends every instance and has the tables made anew')
    void rebuildTables(service.operator, service)
  })
}

/** In some runs requests come twice for some time. */
const planDuplicates = ({ timeline, history, service, random }: Run, busyMs: number): void => {
  const own = random.fork('when duplicates')
  if (!own.chance(DUPLICATES_CHANCE)) return
  const beginsMs = own.next() * busyMs
  timeline.after(beginsMs, () => {
    history.count('fault: duplicated requests')
    history.note('some requests to the event store and the fact bus come twice')
    service.duplicates.setChance(DUPLICATED)
  })
  timeline.after(beginsMs + own.next() * DUPLICATES_MAX_MS, () => service.duplicates.setChance(0))
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
  planRebuild(run, busyMs)
  planDuplicates(run, busyMs)
  await timeline.run(busyMs)
  heal({ service, history })
  void tendParked(service.operator, () => isOver)
  await timeline.run(service.troubledUntilMs())
  await timeline.run(timeline.nowMs() + REBUILD_MAX_MS, () => !service.isEnded())
  const finished = await finish(run, readers, openActions)
  const violations = finished.length > 0 ? finished : await checkRestored(run)
  isOver = true
  const ids = service.log.events.map(({ id }) => id).join()
  history.note(`the log has ${service.log.events.length} events, ${createHash('sha256').update(ids).digest('hex')}`)
  history.count('facts that came late', (await engine.run('select from late_facts')).length)
  history.count('requests that came twice', service.duplicates.count())
  history.count('rows refused', service.refusals.count())
  history.count('take-overs', service.database.takeOvers())
  history.count('lost answers', service.network.lost())
  for (const { machine, feedStates } of service.instances()) {
    for (const { name, state, position, error } of feedStates().values())
      history.note(`${machine.name}: ${name} is ${state} at ${position}${error === undefined ? '' : ` (${error})`}`)
  }
  service.end()
  return { seed, plan, violations, history, virtualMs: timeline.nowMs(), steps: timeline.steps() }
}
