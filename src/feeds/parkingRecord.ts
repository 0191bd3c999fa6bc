import { timeNow } from '../lib/time.ts'
import { isRejection } from '../../streams/decider.ts'
import { SYSTEM_TENANT } from '../../streams/envelope.ts'
import { type ParkingCommand, parking } from '../../streams/parking/index.ts'
import { streamOf } from '../../streams/aggregate.ts'
import { derivedId, eventIdOf, newUuid } from '../lib/identifiers.ts'
import { newEventOf, recordedOf } from '../lib/storedEvents.ts'
import { type EventStore, type ExpectedRevision, Unavailable, type World } from '../ports.ts'
import { pauseBefore } from '../settings/timeBudgets.ts'

/**
 * The record, in the log, of facts that were ever parked. Readers keep their cursors of GET /events, and the table of parked
 * facts does not last as long: it goes back when Postgres is restored, and is emptied by a reset. A fact that was parked
 * since the backup would then be written at its own position, which readers may have passed. So its event is recorded here
 * before it is parked, is parked again whenever the projector reads it again, and is replayed at the end of what readers can
 * have reached:
 *
 *   parked ── replayed ──▶ visible ── Postgres forgets it: its event is read again ──▶ parked ── …
 *
 * The end is an event of the record itself: everything that readers have reached is before it in the log, whatever the node
 * of the event store that answers this run knows.
 */

const RECORD_ID = derivedId(parking.prefix, 'facts')
const RECORD_STREAM = streamOf(parking, RECORD_ID)
const ATTEMPTS_MAX = 12
const CONTENDED = `Others changed the record of parked facts at each of ${ATTEMPTS_MAX} attempts.`
const BY = { tenant: SYSTEM_TENANT, subject: 'projector', client: SYSTEM_TENANT, authority: 'projector' }

export type RecordDependencies = {
  readonly store: Pick<EventStore, 'append' | 'readStream'>
  readonly world: World
}

/** An event of the record that makes its reader park the event again. */
export class ParkedBefore extends Error {
  constructor() {
    super('It was parked before, and readers may have passed its position. It is replayed at the end of the log.')
    this.name = 'ParkedBefore'
  }
}

/** Long because its functions share the state of one run. */
export const openParkingRecord = async ({ store, world }: RecordDependencies) => {
  let state = parking.decider.initial
  let last: ExpectedRevision = 'no_stream'

  const readNew = async (): Promise<void> => {
    for await (const stored of store.readStream(RECORD_STREAM, last === 'no_stream' ? {} : { from: last + 1n })) {
      state = parking.decider.evolve(state, recordedOf(parking.codec, stored).event)
      last = stored.revision
    }
  }

  /** Resolves to the position of the event; undefined if the record has it already. */
  const execute = async (command: ParkingCommand, run = newUuid(world)): Promise<bigint | undefined> => {
    for (let attempt = 1; ; attempt += 1) {
      const decided = parking.decider.decide(command, state)
      const [event] = isRejection(decided) ? [] : decided
      if (event === undefined) return undefined
      const eventId = eventIdOf(run, RECORD_ID, last === 'no_stream' ? 0n : last + 1n)
      const at = timeNow(world)
      const metadata = { ...BY, correlationId: run, causationId: run, at, schemaVersion: 0 }
      const appended = await store.append(
        RECORD_STREAM,
        [newEventOf(parking.codec, { event, eventId, metadata })],
        last,
      )
      await readNew()
      if (appended.ok) return appended.position
      if (attempt === ATTEMPTS_MAX)
        throw new Unavailable('event store', { effect: 'none', cause: new Error(CONTENDED) })
      // The store may refuse an append because of an event that is committed but cannot be read yet.
      await pauseBefore(attempt, world)
    }
  }

  await readNew()
  return {
    hasParked: (position: bigint): boolean => state.parked.has(`${position}`),
    /** Resolves when all of the positions are recorded. */
    park: async (positions: readonly bigint[]): Promise<void> => void (await execute({ type: 'ParkFacts', positions })),
    /** Appends an event and resolves to its position, after which the run may replay. */
    beginReplay: (): Promise<bigint | undefined> => {
      const run = newUuid(world)
      return execute({ type: 'BeginReplay', run }, run)
    },
  }
}
export type ParkingRecord = Awaited<ReturnType<typeof openParkingRecord>>
