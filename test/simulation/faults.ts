import type { JsonObject } from '../../src/ports.ts'
import { replayParked, tellStanding } from './operator.ts'
import { POISON_TYPE } from './poison.ts'
import type { History } from './history.ts'
import type { Condition, ServerName } from './network.ts'
import type { Random } from './random.ts'
import type { Service } from './service.ts'
import type { Timeline } from './timeline.ts'

/** One thing that goes wrong, and is right again after some time; `heal` makes everything right at once. */
export type FaultParts = {
  readonly service: Service
  readonly timeline: Timeline
  readonly history: History
  readonly random: Random
}
type Fault = (parts: FaultParts) => void | Promise<void>

const SERVERS: readonly ServerName[] = ['event store', 'database', 'fact bus']
const WRONG: readonly Condition[] = ['away', 'hanging', 'slow']
const CLOCK_MAX_MS = 2 * 60 * 60 * 1_000
const PAUSE_MAX_MS = 12_000
const SESSION_END_MS = 8_000
const OUTAGE_MAX_MS = 6_000
const ELECTION_MAX_MS = 3_500
const RESTART_MAX_MS = 4_000

const crash: Fault = ({ service, random }) => {
  service.crash(random.integer(0, 1), random.next() * RESTART_MAX_MS)
}

const pause: Fault = ({ service, timeline, history, random }) => {
  const instances = service.instances()
  if (instances.length === 0) return
  const { machine } = random.pick(instances)
  const durationMs = random.next() * PAUSE_MAX_MS
  history.note(`${machine.name} is stopped for ${Math.round(durationMs)} ms`)
  machine.pause()
  timeline.after(SESSION_END_MS, () => {
    if (machine.isPaused()) service.database.endSessions(machine)
  })
  timeline.after(durationMs, () => {
    if (!machine.isPaused()) return
    history.note(`${machine.name} goes on`)
    machine.resume()
  })
}

const outage: Fault = ({ service, timeline, history, random }) => {
  const server = random.pick(SERVERS)
  const condition = random.pick(WRONG)
  const durationMs = random.next() * OUTAGE_MAX_MS
  history.note(`the ${server} is ${condition} for ${Math.round(durationMs)} ms`)
  service.network.setCondition(server, condition)
  if (server === 'database' && condition === 'away')
    for (const { machine } of service.instances()) service.database.endSessions(machine)
  if (server === 'event store' && condition === 'away') service.log.dropSubscriptions()
  timeline.after(durationMs, () => {
    if (service.network.condition(server) !== condition) return
    service.network.setCondition(server, 'up')
    history.note(`the ${server} is back`)
  })
}

const lostAnswers: Fault = ({ service, timeline, history, random }) => {
  const server = random.pick(SERVERS)
  const durationMs = random.next() * OUTAGE_MAX_MS
  history.note(`answers of the ${server} are lost for ${Math.round(durationMs)} ms`)
  service.network.setLoss(server, random.next() * 0.5)
  timeline.after(durationMs, () => service.network.setLoss(server, 0))
}

const leaderChange: Fault = ({ service, history, random }) => {
  const durationMs = random.next() * ELECTION_MAX_MS
  history.note(`the event store elects a leader for ${Math.round(durationMs)} ms`)
  service.log.changeLeader(durationMs)
  if (random.chance(0.5)) service.log.dropSubscriptions()
}

const connectionLoss: Fault = ({ service, history, random }) => {
  const instances = service.instances()
  if (instances.length === 0) return
  const { machine } = random.pick(instances)
  history.note(`${machine.name} loses its database sessions`)
  service.database.endSessions(machine)
}

const subscriptionDrop: Fault = ({ service, history }) => {
  history.note('the event store drops its subscriptions')
  service.log.dropSubscriptions()
}

const clockJump: Fault = ({ service, history, random }) => {
  const instances = service.instances()
  if (instances.length === 0) return
  const { machine } = random.pick(instances)
  const offsetMs = Math.round((random.next() * 2 - 1) * CLOCK_MAX_MS)
  history.note(`the clock of ${machine.name} is set to ${offsetMs} ms off`)
  machine.setClock(offsetMs)
}

/** Poison: an event of a type that this build does not know, in a stream of its own, as a newer build would write it. */
const CATEGORIES = { order: 'ord', invoice: 'inv', payment: 'pay', operation: 'op' } as const
const unknownEvent: Fault = ({ service, history, random }) => {
  const category = random.pick(Object.keys(CATEGORIES) as (keyof typeof CATEGORIES)[])
  const hex = Buffer.from(random.bytes(16)).toString('hex')
  const id = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
  const stream = `${category}-${CATEGORIES[category]}_${hex.slice(0, 26).toUpperCase().padEnd(26, '0')}`
  const data: JsonObject = { text: 'of no schema' }
  history.note(`an event of an unknown type is appended to ${stream}`)
  service.log.plant(stream, { id, type: POISON_TYPE, data, metadata: { tenant: 'acme' } })
}

/** The facts of one key are larger than their topic takes, until the operator has it mended. */
const largeFact: Fault = ({ service, history, random }) => {
  const keys = service.log.events.map(({ stream }) => stream.slice(stream.indexOf('-') + 1))
  const published = keys.filter(key => /^(ord|inv|pay)_/.test(key))
  if (published.length === 0) return
  const key = random.pick(published)
  history.note(`the broker takes no more facts of ${key}`)
  service.broker.tooLarge.add(key)
}

/** The operator has what waits sent on, whether its cause is mended or not, and discards what no build will read. */
const operatorReplays: Fault = ({ service, history, random }) => {
  history.note('an operator asks for what waits')
  return replayParked(service.engine, random.pick(['leave', 'discard']))
}

const TENANTS = ['acme', 'globex']
const SUSPENDED_MAX_MS = 2_500
const suspension: Fault = ({ service, timeline, history, random }) => {
  const tenant = random.pick(TENANTS)
  history.note(`an operator suspends ${tenant}`)
  const parts = { timeline, random, tenant }
  const reinstate = (): void => {
    history.note(`an operator reinstates ${tenant}`)
    void tellStanding(service.log, parts, 'ReinstateTenant')
  }
  // One word after the other: said at the same time, the first could be the last that the log has.
  void tellStanding(service.log, parts, 'SuspendTenant').then(() => {
    timeline.after(random.next() * SUSPENDED_MAX_MS, reinstate)
  })
}

export const faults: Readonly<Record<string, readonly [weight: number, fault: Fault]>> = {
  crash: [10, crash],
  pause: [7, pause],
  outage: [9, outage],
  'lost answers': [9, lostAnswers],
  'leader change': [6, leaderChange],
  'lost sessions': [5, connectionLoss],
  'dropped subscriptions': [3, subscriptionDrop],
  'clock jump': [4, clockJump],
  'unknown event': [2, unknownEvent],
  'large fact': [2, largeFact],
  'operator replays': [2, operatorReplays],
  suspension: [2, suspension],
}

/** Everything works again, whatever was wrong: from here on the service has ten seconds to finish what was begun. */
export const heal = ({ service, history }: Pick<FaultParts, 'service' | 'history'>): void => {
  history.note('everything is healed')
  for (const server of SERVERS) {
    service.network.setCondition(server, 'up')
    service.network.setLoss(server, 0)
  }
  service.broker.tooLarge.clear()
  for (const { machine } of service.instances()) {
    machine.resume()
    machine.setClock(0)
  }
}
