/** Appends one event to the store whose address is given, by a clock that is set as the test says, and ends with code 0. */

import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { event, newStream } from '../contracts/eventStoreKit.ts'

const [address = '', offsetMs = '0', leapMs = '0'] = process.argv.slice(2)
const trueNow = Date.now
let leaps = 0

/** Each look at this clock finds it moved by `leapMs` more. */
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
