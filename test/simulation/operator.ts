import { createLedger } from '../../src/commands/commandHandler.ts'
import { changeTenantStatus } from '../../src/commands/tenantStatus.ts'
import { type ParkedEvent, parkedSummary, requestParked } from '../../src/feeds/parkedEvents.ts'
import { type Database, Unavailable } from '../../src/ports.ts'
import { resetTables } from '../../src/commands/tablesReset.ts'
import type { TenantCommand } from '../../streams/tenant/index.ts'
import type { SimulatedDatabase } from './database.ts'
import type { SimulatedLog } from './eventStore.ts'
import { createMachine, type Machine, type MachineDependencies } from './machine.ts'
import { UNKNOWN_EVENT_TYPE } from './unknownEventType.ts'

/** The operators' commands. The command line is a process of its own beside the service, and none of the faults meets it. */
export type Operator = {
  readonly machine: Machine
  readonly database: Database
  /** The parked events that an operator has had discarded since the tables were last made anew. */
  readonly discarded: Set<string>
  /** Grows when the tables are about to be made anew, and again when they are: requests of that time may be lost with them. */
  resets: number
}

export const createOperator = (database: SimulatedDatabase, dependencies: MachineDependencies): Operator => {
  const machine = createMachine('operator', dependencies)
  return { machine, database: database.open(machine), discarded: new Set(), resets: 0 }
}

/** Again until the database answers, as an operator does whose command has failed. */
const untilAvailable = async (machine: Machine, work: () => Promise<void>): Promise<void> => {
  for (;;)
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
      await machine.world.sleep(RETRY_MS)
    }
}

export const discardedName = ({ delivery, position }: Pick<ParkedEvent, 'delivery' | 'position'>): string =>
  `${delivery} ${position}`

/** Asks for everything that waits; poison of a newer build stays where it is, or is discarded. */
export const replayParked = (operator: Operator, poison: 'leave' | 'discard'): Promise<void> => {
  const { machine, discarded } = operator
  const { sql } = operator.database
  return untilAvailable(machine, async () => {
    for (const fact of await parkedSummary(sql)) {
      if (fact.requested !== null) continue
      if (fact.type !== UNKNOWN_EVENT_TYPE) await requestParked(sql, fact, 'replay')
      else if (poison === 'discard') {
        const { resets } = operator
        const count = await requestParked(sql, fact, 'discard', fact.position)
        if (count > 0 && operator.resets === resets) discarded.add(discardedName(fact))
      }
    }
  })
}

/** Looks every two seconds at what waits, until the run is over: the cause of it is mended. */
export const replayParkedRegularly = async (operator: Operator, isOver: () => boolean): Promise<void> => {
  while (!isOver()) {
    await operator.machine.world.sleep(LOOK_MS)
    await replayParked(operator, 'leave')
  }
}

/** Says the word of the operator about a tenant, again until the event store has it. */
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
const LOOK_MS = 2_000

const LEASE_MAX_MS = 5_000

/** The processes of the service, which end for a reset of the tables and start again afterwards. */
type Processes = { readonly endAll: () => void; readonly startAll: () => void }

/** `ledger projections reset --to-this-log`: every instance is ended first, and begins again afterwards. */
export const rebuildTables = async (operator: Operator, { endAll, startAll }: Processes): Promise<void> => {
  const { machine, database, discarded } = operator
  operator.resets += 1
  endAll()
  await untilAvailable(machine, async () => {
    const patience = new AbortController()
    void machine.world.sleep(LEASE_MAX_MS).then(() => patience.abort())
    if (!(await resetTables(database, patience.signal)))
      throw new Unavailable('database', 'none', new Error('A process of the ended service holds a lease.'))
  })
  discarded.clear()
  operator.resets += 1
  startAll()
}
