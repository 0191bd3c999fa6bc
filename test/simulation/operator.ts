import { createLedger } from '../../src/commands/commandHandler.ts'
import { changeTenantStatus } from '../../src/commands/tenantStatus.ts'
import { type DeadLetter, deadLetterSummary, requestForDeadLetters } from '../../src/feeds/deadLetters.ts'
import { type Database, Unavailable } from '../../src/ports.ts'
import { resetTables } from '../../src/logIdentity/tablesReset.ts'
import type { TenantCommand } from '../../streams/tenant/index.ts'
import type { SimulatedDatabase } from './database.ts'
import type { SimulatedLog } from './eventStore.ts'
import { createMachine, type Machine, type MachineDependencies } from './machine.ts'
import type { Timeline } from './timeline.ts'
import { UNKNOWN_EVENT_TYPE } from './unknownEventType.ts'

/** The commands of operators. They run in a process of their own, which no fault kills or pauses; its requests can fail. */
export type Operator = {
  readonly machine: Machine
  readonly database: Database
  /** The dead letters that were discarded since the last rebuild or restore of the tables. */
  readonly discarded: Set<string>
  /** Grows before and after each rebuild or restore of the tables, because requests meanwhile may be lost with the tables. */
  resets: number
}

export const createOperator = (database: SimulatedDatabase, dependencies: MachineDependencies): Operator => {
  const machine = createMachine('operator', dependencies)
  return { machine, database: database.open(machine), discarded: new Set(), resets: 0 }
}

/** Repeats the command until the server is available. */
const untilAvailable = async (machine: Machine, work: () => Promise<void>): Promise<void> => {
  for (;;)
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
      await machine.world.sleep(RETRY_MS)
    }
}

export const discardIdOf = ({ delivery, position }: Pick<DeadLetter, 'delivery' | 'position'>): string =>
  `${delivery} ${position}`

/** Requests a replay of all dead letters. Events of unknown types are left, or discarded. */
export const replayParked = (operator: Operator, poison: 'leave' | 'discard'): Promise<void> => {
  const { machine, discarded } = operator
  const { sql } = operator.database
  return untilAvailable(machine, async () => {
    for (const fact of await deadLetterSummary(sql)) {
      if (fact.requested !== null) continue
      if (fact.type !== UNKNOWN_EVENT_TYPE) await requestForDeadLetters(sql, fact, 'replay')
      else if (poison === 'discard') {
        const { resets } = operator
        const count = await requestForDeadLetters(sql, fact, 'discard', fact.position)
        if (count > 0 && operator.resets === resets) discarded.add(discardIdOf(fact))
      }
    }
  })
}

/** Requests a replay of all dead letters every two seconds, when the causes are repaired, until the run is over. */
export const replayParkedRegularly = async (operator: Operator, isOver: () => boolean): Promise<void> => {
  while (!isOver()) {
    await operator.machine.world.sleep(REPLAY_EVERY_MS)
    await replayParked(operator, 'leave')
  }
}

/** Suspends or reinstates a tenant, and repeats the command until it is stored. */
export const setTenantStatus = async (
  log: SimulatedLog,
  dependencies: MachineDependencies & { readonly tenant: string },
  type: 'SuspendTenant' | 'ReinstateTenant',
): Promise<void> => {
  const machine = createMachine('operator', dependencies)
  const ledger = createLedger(log.open(machine), machine.world)
  const run = Buffer.from(dependencies.random.bytes(8)).toString('hex')
  const command: TenantCommand = { type, reason: 'drawn' }
  const context = {
    tenant: dependencies.tenant,
    subject: 'operator',
    client: 'operator',
    authority: 'operator',
    correlationId: `operator-${run}`,
    commandId: `operator-${run}`,
    at: new Date(machine.world.now()).toISOString(),
  }
  await untilAvailable(machine, async () => void (await changeTenantStatus(ledger, command, context)))
}

const RETRY_MS = 200
const REPLAY_EVERY_MS = 2_000

const LEASE_MAX_MS = 5_000

/** Stops and starts all processes of the service. */
type Processes = { readonly stopAll: () => void; readonly startAll: () => void }

/** Restores Postgres from a backup of its own, between the end of all instances and their new start. The log stays as it is. */
export const restoreTables = (
  operator: Operator,
  restore: () => Promise<void>,
  { stopAll, startAll, timeline, downMs }: Processes & { readonly timeline: Timeline; readonly downMs: number },
): void => {
  operator.resets += 1
  stopAll()
  timeline.after(downMs, async () => {
    await restore()
    operator.discarded.clear()
    operator.resets += 1
    startAll()
  })
}

/** Like `ledger projections reset --to-this-log`, between the end of all instances and their new start. */
export const rebuildTables = async (operator: Operator, { stopAll, startAll }: Processes): Promise<void> => {
  const { machine, database, discarded } = operator
  operator.resets += 1
  stopAll()
  await untilAvailable(machine, async () => {
    const timeout = new AbortController()
    void machine.world.sleep(LEASE_MAX_MS).then(() => timeout.abort())
    if (!(await resetTables(database, timeout.signal)))
      throw new Unavailable('database', {
        effect: 'none',
        cause: new Error('A process of the ended service holds a lease.'),
      })
  })
  discarded.clear()
  operator.resets += 1
  startAll()
}
