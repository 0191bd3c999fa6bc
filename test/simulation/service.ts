import type { Authenticate } from '../../src/http/index.ts'
import { createDatabase, type SimulatedDatabase } from './database.ts'
import { createDuplicateRequests, type DuplicateRequests } from './duplicateRequests.ts'
import { createLog, type SimulatedLog } from './eventStore.ts'
import { createBroker, type SimulatedBroker } from './factBus.ts'
import type { History } from './history.ts'
import { principalOf } from './http.ts'
import { type Instance, startInstance } from './instance.ts'
import { createMachine, type Machine } from './machine.ts'
import { createFaultPoints, type FaultPoints, watchedDatabase, watchedStore } from './faultPoints.ts'
import { createNetwork, type Network } from './network.ts'
import { createOperator, type Operator } from './operator.ts'
import type { Engine } from './postgres.ts'
import type { Random } from './random.ts'
import { createRefusedRows, type RefusedRows } from './refusedRows.ts'
import type { Timeline } from './timeline.ts'

/** The servers of a run and the instances of the service on them. */
export type Service = {
  readonly log: SimulatedLog
  readonly database: SimulatedDatabase
  readonly broker: SimulatedBroker
  readonly network: Network
  readonly engine: Engine
  readonly operator: Operator
  readonly faultPoints: FaultPoints
  readonly refusals: RefusedRows
  readonly duplicates: DuplicateRequests
  readonly instances: () => readonly Running[]
  readonly placeOf: (machine: Machine) => number
  /** Ends the process in this place without warning; another one begins there after the pause. */
  readonly crash: (place: number, restartAfterMs: number) => void
  /** Ends every process, and lets none begin before `startAll`. */
  readonly endAll: () => void
  readonly startAll: () => void
  readonly isEnded: () => boolean
  /** Whether all of it has been ended at some time, to make the tables anew. */
  readonly wasEnded: () => boolean
  /** Something goes wrong for so long that cannot be made right before. */
  readonly trouble: (forMs: number) => void
  /** When all of that is over. */
  readonly troubledUntilMs: () => number
  /** A reference to everything that the system itself wrote to its log. */
  readonly faultsLogged: readonly string[]
  /** Ends the run: every process, without warning, and all that would keep its memory. */
  readonly end: () => void
}

export type Running = Instance & {
  /** Resolves when the process has ended. */
  readonly ended: Promise<void>
}

export type ServiceDependencies = {
  readonly timeline: Timeline
  readonly random: Random
  readonly engine: Engine
  readonly history: History
  readonly instanceCount: number
}

const BEARER_LENGTH = 'Bearer '.length
const RESET_MAX_MS = 200

const authenticate: Authenticate = req => {
  const [tenant = '', subject = ''] = String(req.headers.authorization).slice(BEARER_LENGTH).split('/')
  return Promise.resolve(principalOf({ tenant, subject }))
}

const messageOf = (fields: object): string => {
  const { error, ...others } = fields as { error?: unknown }
  const reason = error instanceof Error ? error.message : JSON.stringify(error ?? '')
  const rest = JSON.stringify(others, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))
  return `${rest} ${reason}`
}

export const startService = (dependencies: ServiceDependencies): Service => {
  const { timeline, random, engine, history, instanceCount } = dependencies
  const network = createNetwork({ timeline, random: random.fork('network') })
  const log = createLog({ timeline, random: random.fork('log'), network })
  const database = createDatabase({ random: random.fork('database'), network, engine })
  const broker = createBroker({ random: random.fork('broker'), network })
  const operator = createOperator(database, { timeline, random: random.fork('operator') })
  const faultPoints = createFaultPoints()
  const refusals = createRefusedRows()
  const duplicates = createDuplicateRequests({ timeline, random: random.fork('duplicates') })
  const faultsLogged: string[] = []
  const running: Running[] = []
  const ends = new Map<Running, () => void>()
  let started = 0
  let troubledUntilMs = 0
  const trouble = (forMs: number): void => {
    troubledUntilMs = Math.max(troubledUntilMs, timeline.nowMs() + forMs)
  }

  const start = (): Running => {
    const name = `instance-${(started += 1)}`
    const machine = createMachine(name, { timeline, random: random.fork(name) })
    const write = (fields: object, message: string): void => {
      if (!machine.isAlive()) return
      faultsLogged.push(`${name}: ${message} ${messageOf(fields)}`)
      history.note(`${name} logs: ${message} ${messageOf(fields)}`)
    }
    const instance = startInstance({
      machine,
      store: watchedStore(duplicates.store(log.open(machine)), machine, faultPoints),
      database: watchedDatabase(refusals.watch(database.open(machine)), machine, faultPoints),
      bus: duplicates.bus(broker.open(machine)),
      authenticate,
      onRefused: () => endMachine(machine),
      log: { info: () => undefined, warn: write, error: write },
    })
    const ended = Promise.withResolvers<void>()
    const alive = { ...instance, ended: ended.promise }
    ends.set(alive, ended.resolve)
    return alive
  }

  const endMachine = (machine: Machine): void => end(running.findIndex(one => one.machine === machine))
  let isEnded = false
  let wasEnded = false
  const end = (place: number): void => {
    const ending = running[place]
    if (ending === undefined || !ending.machine.isAlive()) return
    history.note(`${ending.machine.name} is killed`)
    ending.machine.kill()
    timeline.after(random.next() * RESET_MAX_MS, () => {
      ends.get(ending)?.()
      database.endSessions(ending.machine)
    })
  }
  const begin = (place: number): void => {
    if (isEnded || running[place]?.machine.isAlive()) return
    running[place] = start()
    history.note(`${running[place]?.machine.name} starts`)
  }
  for (let place = 0; place < instanceCount; place += 1) running.push(start())
  return {
    log,
    database,
    broker,
    network,
    engine,
    operator,
    faultPoints,
    refusals,
    duplicates,
    faultsLogged,
    instances: () => running.filter(({ machine }) => machine.isAlive()),
    trouble,
    troubledUntilMs: () => troubledUntilMs,
    placeOf: machine => running.findIndex(one => one.machine === machine),
    crash: (place, restartAfterMs) => {
      if (!running[place]?.machine.isAlive()) return
      trouble(restartAfterMs)
      end(place)
      timeline.after(restartAfterMs, () => begin(place))
    },
    endAll: () => {
      isEnded = true
      wasEnded = true
      for (const place of running.keys()) end(place)
    },
    startAll: () => {
      isEnded = false
      for (const place of running.keys()) begin(place)
    },
    isEnded: () => isEnded,
    wasEnded: () => wasEnded,
    end: () => {
      for (const { machine, stopping } of ends.keys()) {
        machine.kill()
        stopping.abort()
      }
      database.end()
    },
  }
}
