import { randomUUID } from 'node:crypto'
import type { PersonalKind } from '../../../src/personalTexts/personalTexts.ts'
import { openEventStore } from '../../../src/adapters/eventstoredb/eventStore.ts'
import { openDatabase } from '../../../src/adapters/postgres/database.ts'
import { createLedger, type Ledger } from '../../../src/commands/commandHandler.ts'
import { erasePersonalTexts } from '../../../src/personalTexts/personalErasure.ts'
import { realWorld } from '../../../src/lib/clockAndRandomness.ts'
import type { Database, EventStore, StoredEvent } from '../../../src/ports.ts'
import { sharedService, type TestService } from '../../support/service.ts'
import { caller, type Difference, startVariant, type Variant } from '../../support/serviceVariants.ts'
import { type Switchable, switchable } from '../../support/switchableDatabase.ts'

/** The set-up of the tests of personal texts: the shared service, its parts, and variants whose database can be switched off. */

export const operatorContext = (tenant: string) => ({
  tenant,
  subject: 'operator',
  client: 'test',
  authority: 'operator',
  correlationId: randomUUID(),
  commandId: randomUUID(),
  at: new Date().toISOString(),
})

export type PersonalTextParts = {
  readonly service: TestService
  readonly store: EventStore
  readonly database: Database
  readonly ledger: Ledger
  readonly switched: Switchable
}

/** The parts are there from the first hook of the suite to its end. */
export const usePersonalTexts = (tenant: string, kind: PersonalKind) => {
  const parts = {} as PersonalTextParts
  const variants: Variant[] = []
  const authenticate = async () => ({ ...caller, tenant })

  before(async () => {
    const service = await sharedService()
    const store = openEventStore({ connectionString: service.addresses.event_store })
    const database = openDatabase({ connectionString: service.addresses.postgres })
    const ledger = createLedger(store, realWorld())
    Object.assign(parts, { service, store, database, ledger, switched: switchable(database) })
  })
  after(async () => {
    await Promise.all(variants.map(variant => variant.close()))
    await parts.store.close()
    await parts.database.close()
  })
  afterEach(() => {
    parts.switched.state.isDown = false
  })

  return {
    parts,
    authenticate,
    /** A process of its own that has seen nothing yet, on the database that can be switched off. Closed after the suite. */
    startProcess: async (different: Difference = {}): Promise<Variant> => {
      const database = () => ({ ...parts.switched.database, close: async () => undefined })
      const variant = await startVariant(parts.service, { authenticate, database, ...different })
      variants.push(variant)
      return variant
    },
    eventsOf: async (stream: string): Promise<StoredEvent[]> => {
      const events: StoredEvent[] = []
      for await (const event of parts.store.readStream(stream)) events.push(event)
      return events
    },
    erase: (text: string) =>
      erasePersonalTexts(parts.database, parts.ledger, { tenant, kind, text }, operatorContext(tenant)),
  }
}
