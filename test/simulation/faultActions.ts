import type { JsonObject } from '../../src/ports.ts'
import type { History } from './history.ts'
import type { Machine } from './machine.ts'
import type { Condition, ServerName } from './network.ts'
import { replayParked } from './operator.ts'
import { UNKNOWN_EVENT_TYPE } from './unknownEventType.ts'
import type { Random } from './random.ts'
import type { Service } from './service.ts'
import type { Timeline } from './timeline.ts'

/** The effects of which faults consist. Each ends after some time, or with `endFaults` (faults.ts). */

export type FaultContext = {
  readonly service: Service
  readonly timeline: Timeline
  readonly history: History
  readonly random: Random
}
/** Begins a fault. The result is false if there was nothing that could fail. */
export type Fault = (context: FaultContext) => boolean
/** Faults by name, drawn with a probability proportional to their weight. */
export type WeightedFaults = Readonly<Record<string, { readonly weight: number; readonly begin: Fault }>>

/** Pauses the process. After `sessionMs` the server ends its database session, and the locks with it, if it is still paused. */
export const pauseMachine = (
  { service, timeline, history }: FaultContext,
  machine: Machine,
  { forMs, sessionMs }: Pause,
): void => {
  history.note(`${machine.name} is stopped for ${Math.round(forMs)} ms`)
  machine.pause()
  timeline.after(sessionMs, () => {
    if (!machine.isAlive() || !machine.isPaused()) return
    history.count('sessions lost while paused')
    service.database.endSessions(machine)
  })
  timeline.after(forMs, () => {
    if (!machine.isPaused()) return
    history.note(`${machine.name} goes on`)
    machine.resume()
  })
}
export type Pause = { readonly forMs: number; readonly sessionMs: number }

/** Sets the condition of a server for a limited time. */
export const setConditionFor = (
  { service, timeline, history }: FaultContext,
  { server, condition, forMs }: { readonly server: ServerName; readonly condition: Condition; readonly forMs: number },
): void => {
  history.note(`the ${server} is ${condition} for ${Math.round(forMs)} ms`)
  service.network.setCondition(server, condition)
  if (server === 'database' && condition === 'away')
    for (const { machine } of service.instances()) service.database.endSessions(machine)
  if (server === 'event store' && condition === 'away') service.log.dropSubscriptions()
  timeline.after(forMs, () => {
    if (service.network.condition(server) !== condition) return
    service.network.setCondition(server, 'up')
    history.note(`the ${server} is back`)
  })
}

const CATEGORIES = { order: 'ord', invoice: 'inv', payment: 'pay', operation: 'op' } as const

/** Appends poison: an event of a type that this build does not know, as a newer build would write it, in a new stream. */
export const appendUnknownEvent = ({ service, history, random }: FaultContext): true => {
  const category = random.pick(Object.keys(CATEGORIES) as (keyof typeof CATEGORIES)[])
  const hex = Buffer.from(random.bytes(16)).toString('hex')
  const id = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
  const stream = `${category}-${CATEGORIES[category]}_${hex.slice(0, 26).toUpperCase().padEnd(26, '0')}`
  const data: JsonObject = { text: 'of no schema' }
  history.note(`an event of an unknown type is appended to ${stream}`)
  service.log.plant(stream, { id, type: UNKNOWN_EVENT_TYPE, data, metadata: { tenant: 'acme' } })
  return true
}

/** The operator requests a replay of dead letters, even if their cause remains, and may discard poison. */
export const operatorReplays = ({ service, history, random }: FaultContext): true => {
  history.note('an operator asks for what waits')
  void replayParked(service.operator, random.pick(['leave', 'discard']))
  return true
}
