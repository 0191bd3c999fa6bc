import { createHash } from 'node:crypto'
import { checkFairness } from './checks/fairness.ts'
import type { Violation } from './checks/violation.ts'
import { actionWeights, runnableActions } from './clients/actions.ts'
import { createClient } from './clients/client.ts'
import { createKnownResources } from './clients/resources.ts'
import { CALLERS, TENANT_CALLERS } from './clients/callers.ts'
import { type FactReader, followPages, followStream } from './clients/reader.ts'
import { endFaults, faults } from './faults.ts'
import { type Run, runFinalChecks } from './finalChecks.ts'
import { replayParkedRegularly } from './operator.ts'
import { BUSY_MS, drawPlan, type Plan, RESTORED } from './plan.ts'
import { UNKNOWN_EVENT_TYPE } from './unknownEventType.ts'
import { timeOf } from './machine.ts'
import { createHistory, type History, onlyInternalErrors } from './history.ts'
import type { Engine } from './postgres.ts'
import { createRandom } from './random.ts'
import { replacements } from './replacements.ts'
import { checkRestored, untilRebuilt } from './restoredLog.ts'
import { type Service, startService } from './service.ts'
import type { SimulatedBuild } from './simulatedBuilds.ts'
import { createTimeline } from './timeline.ts'

/** One run of the whole service with one seed: draws the plan, runs it on virtual time and checks the guarantees of the service. */

export type Options = {
  readonly seed: number
  /** Replaces the plan that is drawn from the seed. */
  readonly plan?: Plan
  /** The time during which clients send requests and faults begin, in virtual milliseconds. */
  readonly busyMs?: number
  /** A build that runs beside this one. */
  readonly other?: SimulatedBuild | undefined
}
export type Outcome = {
  readonly seed: number
  readonly plan: Plan
  readonly violations: readonly Violation[]
  readonly history: History
  readonly virtualMs: number
  readonly steps: number
  /** The time in which processes of both builds were alive, in virtual milliseconds. */
  readonly sideBySideMs: number
}

const INSTANCES = 2
const SUBSCRIBERS_CHANCE = 0.25
const STREAMS_CHANCE = 0.4

const newestPaymentIdOf =
  (service: Service) =>
  (tenant: string): string | undefined => {
    const stored = service.log.events.findLast(
      ({ stream, metadata, type }) =>
        stream.startsWith('payment-') && metadata['tenant'] === tenant && type !== UNKNOWN_EVENT_TYPE,
    )
    return stored?.stream.slice('payment-'.length)
  }

/** Schedules every entry of the plan. Returns a function for the number of actions that have not ended. */
const schedulePlan = (run: Run, plan: Plan): (() => number) => {
  const { timeline, history, service, random } = run
  const actions = runnableActions(newestPaymentIdOf(service))
  const resources = createKnownResources()
  let open = 0
  for (const { number, atMs, kind, name } of plan) {
    if (kind === 'end') continue
    const rng = random.fork(`${kind}/${number}`)
    if (kind === 'fault') {
      timeline.after(atMs, () => {
        if ((faults[name] ?? replacements[name])?.begin({ service, timeline, history, random: rng }))
          history.count(`fault: ${name}`)
      })
      continue
    }
    open += 1
    const client = createClient({ service, timeline, history, random: rng, action: number })
    timeline.after(atMs, () => {
      void actions
        .get(name)?.({ client, resources, caller: rng.pick(CALLERS) })
        .finally(() => (open -= 1))
    })
  }
  return () => open
}

/** Starts one reader of pages for each tenant, and in some runs also one of a stream. */
const startReaders = ({ timeline, history, service, random }: Run, isOver: () => boolean): readonly FactReader[] => {
  const quiet = onlyInternalErrors(history)
  const hasStreams = random.fork('streams').chance(STREAMS_CHANCE)
  return TENANT_CALLERS.flatMap((caller, index) =>
    (hasStreams ? [followPages, followStream] : [followPages]).map((follow, kind) => {
      const rng = random.fork(`reader/${index}/${kind}`)
      // Negative, apart from the numbers of the plan's actions.
      const action = -1 - index * 2 - kind
      return follow({
        client: createClient({ service, timeline, history: quiet, random: rng, action }),
        caller,
        isOver,
      })
    }),
  )
}

/** Runs clients and faults, ends all faults, and waits until a rebuild of the tables that has begun is over. */
const runPlan = async ({ timeline, history, service }: Run, busyMs: number, isOver: () => boolean): Promise<void> => {
  await timeline.advance(busyMs)
  endFaults({ service, history })
  void replayParkedRegularly(service.operator, isOver)
  await timeline.advance(service.faultsUntilMs())
  if (service.wasStoppedByOperator()) await untilRebuilt({ timeline, service })
}

/** Adds the state at the end of the run to its history. */
const recordEnd = async ({ history, service }: Run): Promise<void> => {
  const { log, engine, duplicates, refusals, database, network, other } = service
  const ids = log.events.map(({ id }) => id).join()
  history.note(`the log has ${log.events.length} events, ${createHash('sha256').update(ids).digest('hex')}`)
  history.count('late facts', (await engine.query('select from late_facts')).length)
  history.count('requests sent twice', duplicates.count())
  history.count('keys of refused rows', refusals.count())
  const takeOvers = database.takeOvers()
  history.count('leases taken over', takeOvers.all)
  if (other) history.count('leases taken over from the other build', takeOvers.betweenBuilds)
  history.count('restores of the database', database.restoredTo() === undefined ? 0 : 1)
  history.count('lost answers', network.lostAnswers())
  for (const { machine, feedStates } of service.instances()) {
    for (const { name, state, position, error } of feedStates().values())
      history.note(`${machine.name}: ${name} is ${state} at ${position}${error === undefined ? '' : ` (${error})`}`)
  }
}

const PROGRESS_EVERY_MS = 1_000

/** `onProgress` is called every second of real time, with the virtual milliseconds since the run began. */
export const simulate = async (
  engine: Engine,
  { seed, busyMs = BUSY_MS, plan: given, other }: Options,
  onProgress: (virtualMs: number) => void = () => undefined,
): Promise<Outcome> => {
  await engine.reset()
  const random = createRandom(seed)
  const timeline = createTimeline(random.fork('timeline'))
  engine.setClock(() => timeOf(timeline.nowMs()))
  const history = createHistory(timeline.nowMs)
  const hasSubscribers = random.fork('subscribers').chance(SUBSCRIBERS_CHANCE)
  const service = startService({ timeline, random, engine, history, instanceCount: INSTANCES, other })
  const run = { timeline, history, service, random }
  const plan = given ?? drawPlan(random, actionWeights(hasSubscribers), { busyMs, hasOther: other !== undefined })
  const openActions = schedulePlan(run, plan)
  const progress = setInterval(() => onProgress(timeline.nowMs()), PROGRESS_EVERY_MS)
  let isOver = false
  const readers = startReaders(run, () => isOver)
  await runPlan(run, busyMs, () => isOver)
  const actual = [
    ...(await runFinalChecks(run, readers, openActions)),
    ...checkFairness(service.waits, history.attempts, plan),
  ]
  const isRestored = plan.some(({ name }) => name === RESTORED)
  const violations = actual.length === 0 && isRestored ? await checkRestored(run) : actual
  isOver = true
  await recordEnd(run)
  const sideBySideMs = service.sideBySideMs()
  service.end()
  clearInterval(progress)
  return { seed, plan, violations, history, virtualMs: timeline.nowMs(), steps: timeline.steps(), sideBySideMs }
}
