/** Appends two events to the store at the given address, with a shifted clock, and exits with code 0 on success. */

import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { event, newStream } from '../contracts/eventStoreFixtures.ts'

const [address = '', offsetMs = '0', leapMs = '0'] = process.argv.slice(2)
const trueNow = Date.now
let leaps = 0

/** Each reading of this clock is `leapMs` further ahead. */
const shiftedNow = (): number => trueNow() + Number(offsetMs) + Number(leapMs) * leaps++

class ShiftedDate extends Date {
  static override now = shiftedNow

  constructor(...given: readonly (string | number)[]) {
    super(given[0] ?? shiftedNow())
  }
}
Object.assign(globalThis, { Date: ShiftedDate })

const store = openEventStore({ connectionString: address })
const stream = newStream()
const created = await store.append(stream, [event()], 'no_stream')
const followed = await store.append(stream, [event()], 0n)
await store.close()
process.exit(created.ok && followed.ok ? 0 : 1)
