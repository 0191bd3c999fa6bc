import { createLedger } from '../../src/commands/handle.ts'
import { changeTenantStatus } from '../../src/commands/tenantStatus.ts'
import { parkedSummary, requestParked } from '../../src/feeds/deadLetters.ts'
import { Unavailable } from '../../src/ports.ts'
import type { TenantCommand } from '../../streams/tenant/index.ts'
import { POISON_TYPE } from './poison.ts'
import type { Engine } from './postgres.ts'
import type { SimulatedLog } from './eventStore.ts'
import { createMachine, type MachineParts } from './machine.ts'

/** The operators' commands. The command line is a process of its own beside the service. */

/** Asks for everything that waits; poison of a newer build stays where it is, or is discarded. */
export const replayParked = async (engine: Engine, poison: 'leave' | 'discard'): Promise<void> => {
  for (const fact of await parkedSummary(engine.run)) {
    if (fact.requested !== null) continue
    if (fact.type !== POISON_TYPE) await requestParked(engine.run, fact, 'replay')
    else if (poison === 'discard') await requestParked(engine.run, fact, 'discard', fact.position)
  }
}

/** Says the word of the operator about a tenant, again until the event store has it. */
export const tellStanding = async (
  log: SimulatedLog,
  parts: MachineParts & { readonly tenant: string },
  type: 'SuspendTenant' | 'ReinstateTenant',
): Promise<void> => {
  const machine = createMachine('operator', parts)
  const ledger = createLedger(log.open(machine), machine.world)
  const run = Buffer.from(parts.random.bytes(8)).toString('hex')
  const command: TenantCommand = { type, reason: 'drawn' }
  const context = {
    tenant: parts.tenant,
    subject: 'operator',
    client: 'operator',
    authority: 'operator',
    correlationId: `operator-${run}`,
    commandId: `operator-${run}`,
    at: new Date(machine.world.now()).toISOString(),
  }
  for (;;)
    try {
      await changeTenantStatus(ledger, command, context)
      return
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
      await machine.world.sleep(RETRY_MS)
    }
}

const RETRY_MS = 200
