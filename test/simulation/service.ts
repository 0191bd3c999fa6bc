import type { Authenticate } from '../../src/http/index.ts'
import { createDatabase, type SimulatedDatabase } from './database.ts'
import { createDuplicateRequests, type DuplicateRequests } from './duplicateRequests.ts'
import { createLog, type SimulatedLog } from './eventStore.ts'
import { createBroker, type SimulatedBroker } from './factBus.ts'
import type { History } from './history.ts'
import type { Answer, Sent } from './http.ts'
import type { Instance } from './instance.ts'
import { createMachine, type Machine } from './machine.ts'
import { createFaultPoints, type FaultPoints, notifyingDatabase, notifyingStore } from './faultPoints.ts'
import { createNetwork, type Network } from './network.ts'
import { createOperator, type Operator } from './operator.ts'
import type { Engine } from './postgres.ts'
import type { Random } from './random.ts'
import { createRefusedRows, type RefusedRows } from './refusedRows.ts'
import { createSideBySide } from './sideBySide.ts'
import { type SimulatedBuild, thisBuild } from './simulatedBuilds.ts'
import type { Timeline } from './timeline.ts'

/** The time for which a request waited for its turn. */
export type Wait = { readonly tenant: string; readonly waitedMs: number }

/** The simulated servers of a run, and the instances of the service that use them. */
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
  /** The instances that are alive. */
  readonly instances: () => readonly RunningInstance[]
  /** The slot in which the process runs. A new process takes the slot of a killed one. */
  readonly slotOf: (machine: Machine) => number
  /** Kills the process in this slot. Another one starts there after the pause. */
  readonly crash: (slot: number, restartAfterMs: number) => void
  /** The build that runs in each slot, or will when a process starts there. */
  readonly builds: readonly SimulatedBuild[]
  /** The build beside this one, if there is one. */
  readonly other: SimulatedBuild | undefined
  /** Kills the process in this slot. One of the build starts there after the pause. */
  readonly replaceBy: (build: SimulatedBuild, slot: number, startAfterMs: number) => void
  /** The virtual time in which processes of both builds were alive. */
  readonly sideBySideMs: () => number
  /** Kills every process. None starts before `startAll`. */
  readonly stopAll: () => void
  readonly startAll: () => void
  readonly isStoppedByOperator: () => boolean
  /** Whether all processes were stopped at some time, for a rebuild or a restore of the tables. */
  readonly wasStoppedByOperator: () => boolean
  /** Reports a fault of this duration, which cannot be ended earlier. */
  readonly extendFaults: (forMs: number) => void
  /** The virtual time at which all such faults are over. */
  readonly faultsUntilMs: () => number
  /** The warnings and errors that the instances have logged. */
  readonly loggedProblems: readonly string[]
  /** The waits of requests for their turns. */
  readonly waits: readonly Wait[]
  /** Ends the run: kills every process, and releases what would stay in memory. */
  readonly end: () => void
}

export type RunningInstance = Instance & {
  /** Resolves when the process has ended. */
  readonly ended: Promise<void>
  readonly send: (sent: Sent) => Promise<Answer>
}

export type ServiceDependencies = {
  readonly timeline: Timeline
  readonly random: Random
  readonly engine: Engine
  readonly history: History
  readonly instanceCount: number
  /** A build that runs beside this one: all instances begin with it, and faults replace them. */
  readonly other?: SimulatedBuild | undefined
}

const BEARER_LENGTH = 'Bearer '.length
const CONNECTION_END_MAX_MS = 200

const authenticateBy =
  ({ principalOf }: SimulatedBuild): Authenticate =>
  req => {
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
  const { timeline, random, engine, history, instanceCount, other } = dependencies
  const network = createNetwork({ timeline, random: random.fork('network') })
  const log = createLog({ timeline, random: random.fork('log'), network })
  const database = createDatabase({ random: random.fork('database'), network, engine })
  const broker = createBroker({ random: random.fork('broker'), network })
  const operator = createOperator(database, { timeline, random: random.fork('operator') })
  const faultPoints = createFaultPoints()
  const refusals = createRefusedRows()
  const duplicates = createDuplicateRequests({ timeline, random: random.fork('duplicates') })
  const faultsLogged: string[] = []
  const waits: Wait[] = []
  const running: RunningInstance[] = []
  const ends = new Map<RunningInstance, () => void>()
  let started = 0
  let faultsUntilMs = 0
  const extendFaults = (forMs: number): void => {
    faultsUntilMs = Math.max(faultsUntilMs, timeline.nowMs() + forMs)
  }

  const builds = Array.from({ length: instanceCount }, () => other ?? thisBuild)
  const sideBySide = createSideBySide(timeline)

  const start = (slot: number): RunningInstance => {
    const name = `instance-${(started += 1)}`
    const build = builds[slot] ?? thisBuild
    const machine = createMachine(name, { timeline, random: random.fork(name), build: build.name })
    sideBySide.begin(machine)
    const write = (fields: object, message: string): void => {
      if (!machine.isAlive()) return
      faultsLogged.push(`${name}: ${message} ${messageOf(fields)}`)
      history.note(`${name} logs: ${message} ${messageOf(fields)}`)
    }
    const instance = build.startInstance({
      machine,
      store: notifyingStore(duplicates.store(log.open(machine)), machine, faultPoints),
      database: notifyingDatabase(refusals.wrap(database.open(machine)), machine, faultPoints),
      bus: duplicates.bus(broker.open(machine)),
      authenticate: authenticateBy(build),
      onRefused: () => endMachine(machine),
      onWait: (tenant, waitedMs) => waits.push({ tenant, waitedMs }),
      logger: { info: () => undefined, warn: write, error: write },
    })
    const ended = Promise.withResolvers<void>()
    const alive = { ...instance, ended: ended.promise, send: (sent: Sent) => build.send(instance, sent) }
    ends.set(alive, ended.resolve)
    return alive
  }

  const endMachine = (machine: Machine): void => end(running.findIndex(one => one.machine === machine))
  let isStopped = false
  let wasStopped = false
  const end = (slot: number): void => {
    const ending = running[slot]
    if (ending === undefined || !ending.machine.isAlive()) return
    history.note(`${ending.machine.name} is killed`)
    ending.machine.kill()
    sideBySide.end(ending.machine)
    timeline.after(random.next() * CONNECTION_END_MAX_MS, () => {
      ends.get(ending)?.()
      database.endSessions(ending.machine)
    })
  }
  const begin = (slot: number): void => {
    if (isStopped || running[slot]?.machine.isAlive()) return
    const { machine } = (running[slot] = start(slot))
    history.note(`${machine.name} starts${other ? `, of ${machine.build}` : ''}`)
  }
  const crash = (slot: number, restartAfterMs: number): void => {
    if (!running[slot]?.machine.isAlive()) return
    extendFaults(restartAfterMs)
    end(slot)
    timeline.after(restartAfterMs, () => begin(slot))
  }
  for (let slot = 0; slot < instanceCount; slot += 1) running.push(start(slot))
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
    loggedProblems: faultsLogged,
    waits,
    instances: () => running.filter(({ machine }) => machine.isAlive()),
    extendFaults,
    faultsUntilMs: () => faultsUntilMs,
    slotOf: machine => running.findIndex(one => one.machine === machine),
    crash,
    builds,
    other,
    replaceBy: (build, slot, startAfterMs) => {
      builds[slot] = build
      crash(slot, startAfterMs)
    },
    sideBySideMs: sideBySide.totalMs,
    stopAll: () => {
      isStopped = true
      wasStopped = true
      for (const slot of running.keys()) end(slot)
    },
    startAll: () => {
      isStopped = false
      for (const slot of running.keys()) begin(slot)
    },
    isStoppedByOperator: () => isStopped,
    wasStoppedByOperator: () => wasStopped,
    end: () => {
      for (const { machine, stopping } of ends.keys()) {
        machine.kill()
        stopping.abort()
      }
      database.end()
    },
  }
}
