import { greedyTenant } from './greedyTenant.ts'
import { timeOf } from './machine.ts'
import { rebuildTables, restoreTables, setTenantStatus } from './operator.ts'
import type { Condition, ServerName } from './network.ts'
import { COUNTED_TIMED_FAULTS, timedFaults } from './timedFaults.ts'
import {
  type Fault,
  type FaultContext,
  operatorReplays,
  setConditionFor,
  pauseMachine,
  appendUnknownEvent,
  type WeightedFaults,
} from './faultActions.ts'

const SERVERS: readonly ServerName[] = ['event store', 'database', 'fact bus']
const FAULTY_CONDITIONS: readonly Condition[] = ['away', 'hanging', 'slow']
const CLOCK_MAX_MS = 2 * 60 * 60 * 1_000
const PAUSE_MAX_MS = 6_000
const SESSION_END_MAX_MS = 6_000
const OUTAGE_MAX_MS = 6_000
const ELECTION_MAX_MS = 3_500
const RESTART_MAX_MS = 4_000

const crash: Fault = ({ service, random }) => {
  if (service.instances().length === 0) return false
  service.crash(random.integer(0, 1), random.next() * RESTART_MAX_MS)
  return true
}

const pause: Fault = context => {
  const { service, random } = context
  const instances = service.instances()
  if (instances.length === 0) return false
  const sleep = { forMs: random.next() * PAUSE_MAX_MS, sessionMs: random.next() * SESSION_END_MAX_MS }
  pauseMachine(context, random.pick(instances).machine, sleep)
  return true
}

const outage: Fault = context => {
  const { random } = context
  setConditionFor(context, {
    server: random.pick(SERVERS),
    condition: random.pick(FAULTY_CONDITIONS),
    forMs: random.next() * OUTAGE_MAX_MS,
  })
  return true
}

const lostAnswers: Fault = ({ service, timeline, history, random }) => {
  const server = random.pick(SERVERS)
  const durationMs = random.next() * OUTAGE_MAX_MS
  history.note(`answers of the ${server} are lost for ${Math.round(durationMs)} ms`)
  service.network.setLoss(server, random.next() * 0.5)
  timeline.after(durationMs, () => service.network.setLoss(server, 0))
  return true
}

const leaderChange: Fault = ({ service, history, random }) => {
  const durationMs = random.next() * ELECTION_MAX_MS
  history.note(`the event store elects a leader for ${Math.round(durationMs)} ms`)
  service.log.changeLeader(durationMs)
  service.extendFaults(durationMs)
  if (random.chance(0.5)) service.log.dropSubscriptions()
  return true
}

const connectionLoss: Fault = ({ service, history, random }) => {
  const instances = service.instances()
  if (instances.length === 0) return false
  const { machine } = random.pick(instances)
  history.note(`${machine.name} loses its database sessions`)
  service.database.endSessions(machine)
  return true
}

const subscriptionDrop: Fault = ({ service, history }) => {
  history.note('the event store drops its subscriptions')
  service.log.dropSubscriptions()
  return true
}

const clockJump: Fault = ({ service, history, random }) => {
  const instances = service.instances()
  if (instances.length === 0) return false
  const { machine } = random.pick(instances)
  const offsetMs = Math.round((random.next() * 2 - 1) * CLOCK_MAX_MS)
  history.note(`the clock of ${machine.name} is set to ${offsetMs} ms off`)
  machine.setClock(offsetMs)
  return true
}

/** The broker refuses the facts of one key as too large, until all faults end. */
const largeFact: Fault = ({ service, history, random }) => {
  const keys = service.log.events.map(({ stream }) => stream.slice(stream.indexOf('-') + 1))
  const published = keys.filter(key => /^(ord|inv|pay)_/.test(key))
  if (published.length === 0) return false
  const key = random.pick(published)
  history.note(`the broker takes no more facts of ${key}`)
  service.broker.keysOfLargeFacts.add(key)
  return true
}

const TENANTS = ['acme', 'globex']

const SUSPENDED_MAX_MS = 2_500
const suspension: Fault = ({ service, timeline, history, random }) => {
  const tenant = random.pick(TENANTS)
  history.note(`an operator suspends ${tenant}`)
  const context = { timeline, random, tenant }
  const reinstate = (): void => {
    history.note(`an operator reinstates ${tenant}`)
    void setTenantStatus(service.log, context, 'ReinstateTenant')
  }
  const forMs = random.next() * SUSPENDED_MAX_MS
  service.extendFaults(forMs)
  // The second command is sent after the first is stored; sent concurrently, the suspension could be the last in the log.
  void setTenantStatus(service.log, context, 'SuspendTenant').then(() => {
    timeline.after(forMs, reinstate)
  })
  return true
}

/** An operator rebuilds all tables from the log. */
const rebuild: Fault = ({ service, history }) => {
  if (service.isStoppedByOperator()) return false
  history.note('an operator ends every instance and has the tables made anew')
  void rebuildTables(service.operator, service)
  return true
}

const BACKUP_AGE_MAX_MS = 3_000
const DOWN_MAX_MS = 1_000
/** An operator restores Postgres alone from a backup. The log, and the facts that readers and consumers have, are later. */
const restoredDatabase: Fault = ({ service, timeline, history, random }) => {
  const ageMs = random.next() * BACKUP_AGE_MAX_MS
  service.extendFaults(ageMs)
  history.note(`the database is backed up, and restored ${Math.round(ageMs)} ms later`)
  timeline.after(0, async () => {
    const restore = await service.database.backUp(timeOf(timeline.nowMs()))
    timeline.after(ageMs, () => {
      if (service.isStoppedByOperator()) return
      history.note('an operator ends every instance and restores the database')
      restoreTables(service.operator, restore, { ...service, timeline, downMs: random.next() * DOWN_MAX_MS })
    })
  })
  return true
}

const DUPLICATES_MAX_MS = 4_000
const DUPLICATES_CHANCE = 0.3
const duplicatedRequests: Fault = ({ service, timeline, history, random }) => {
  history.note('some requests to the event store and the fact bus come twice')
  service.duplicates.setChance(DUPLICATES_CHANCE)
  timeline.after(random.next() * DUPLICATES_MAX_MS, () => service.duplicates.setChance(0))
  return true
}

const BEHIND_MAX = 30
const CONNECTED_CHANCE = 0.6
const LAG_MAX_MS = 5_000
const laggingFollower: Fault = ({ service, timeline, history, random }) => {
  const behind = random.integer(0, BEHIND_MAX)
  const forMs = random.next() * LAG_MAX_MS
  history.note(`a follower of the event store is ${behind} events behind for ${Math.round(forMs)} ms`)
  service.log.beginLag(behind, ({ name }) => random.fork(name).chance(CONNECTED_CHANCE))
  timeline.after(forMs, () => service.log.endLag())
  return true
}

const LEADERLESS_MAX_MS = 5_000
/** The first processes start beside a cluster that has not elected its leader yet. */
const noLeaderAtStart: Fault = ({ service, history, random }) => {
  const forMs = random.next() * LEADERLESS_MAX_MS
  history.note(`the event store has no leader for ${Math.round(forMs)} ms`)
  service.log.loseLeader(forMs)
  service.extendFaults(forMs)
  return true
}

/** Begins with the run. */
export const LEADERLESS = 'no leader at the start'

/** All faults, drawn with a probability proportional to their weight. Those of weight 0 are drawn separately (plan.ts). */
export const faults: WeightedFaults = {
  crash: { weight: 10, begin: crash },
  pause: { weight: 7, begin: pause },
  outage: { weight: 9, begin: outage },
  'lost answers': { weight: 9, begin: lostAnswers },
  'leader change': { weight: 6, begin: leaderChange },
  'lost sessions': { weight: 5, begin: connectionLoss },
  'dropped subscriptions': { weight: 3, begin: subscriptionDrop },
  'clock jump': { weight: 4, begin: clockJump },
  'unknown event': { weight: 2, begin: appendUnknownEvent },
  'large fact': { weight: 2, begin: largeFact },
  'operator replays': { weight: 2, begin: operatorReplays },
  suspension: { weight: 2, begin: suspension },
  rebuild: { weight: 0, begin: rebuild },
  'duplicated requests': { weight: 0, begin: duplicatedRequests },
  'greedy tenant': { weight: 0, begin: greedyTenant },
  'restored database': { weight: 0, begin: restoredDatabase },
  [LEADERLESS]: { weight: 0, begin: noLeaderAtStart },
  'lagging follower': { weight: 0, begin: laggingFollower },
  ...timedFaults,
}

/** Ends all faults. The service then has ten seconds to complete unfinished work. */
export const endFaults = ({ service, history }: Pick<FaultContext, 'service' | 'history'>): void => {
  history.note('everything is healed')
  for (const server of SERVERS) {
    service.network.setCondition(server, 'up')
    service.network.setLoss(server, 0)
  }
  service.log.endLag()
  service.broker.keysOfLargeFacts.clear()
  service.faultPoints.clear()
  service.duplicates.setChance(0)
  service.refusals.acceptAll()
  for (const { machine } of service.instances()) {
    machine.resume()
    machine.setClock(0)
  }
}

/** The counted effects of faults that must have happened in many runs, beside the faults themselves. */
const COUNTED_EFFECTS = [
  ...COUNTED_TIMED_FAULTS,
  'fault: restored log',
  'requests sent twice',
  'restores of the database',
  'sessions lost while paused',
  'keys of refused rows',
  'late facts',
  'leases taken over',
  'lost answers',
]

/** The faults and effects that have never happened. After many runs there must be none, or the simulation has a defect. */
export const neverHappened = (counts: ReadonlyMap<string, number>): readonly string[] =>
  [...Object.keys(faults).map(name => `fault: ${name}`), ...COUNTED_EFFECTS].filter(
    name => (counts.get(name) ?? 0) === 0,
  )
