import { expect } from 'chai'
import { openParkingRecord } from '../../src/feeds/parkingRecord.ts'
import { type EventStore, Unavailable } from '../../src/ports.ts'
import { rejectionOf } from '../support/rejection.ts'
import { createVirtualWorld } from '../support/virtualWorld.ts'

const ENOUGH = 100

describe('the record of parked facts', () => {
  it('gives up after some attempts with growing pauses, when the store refuses it because of events that cannot be read', async () => {
    const world = createVirtualWorld()
    let appends = 0
    const store: Pick<EventStore, 'append' | 'readStream'> = {
      append: async () => {
        appends += 1
        if (appends === ENOUGH) throw new Error('It does not give up.')
        return { ok: false, actual: 7n }
      },
      async *readStream() {},
    }
    const record = await openParkingRecord({ store, world })
    const failure = await rejectionOf(record.park([1n]))
    expect(failure).to.be.instanceOf(Unavailable).and.to.include({ effect: 'none' })
    expect(world.slept).to.have.length(appends - 1)
  })
})
