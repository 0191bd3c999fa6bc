import type { EventStore } from '../../src/ports.ts'
import { describeAppending } from './eventStoreAppending.ts'
import { describeDurability } from './eventStoreDurability.ts'
import { describeFeed } from './eventStoreFeed.ts'
import type { EventStoreUnderTest } from './eventStoreFixtures.ts'
import { describeFreshness } from './eventStoreFreshness.ts'
import { describeReading } from './eventStoreReading.ts'

export type { EventStoreUnderTest } from './eventStoreFixtures.ts'

export type Offers = {
  /** Whether the test can restart and kill the store. */
  readonly restart: boolean
}

/** The contract of all event stores behind the port. `start` is called once. */
export const eventStoreContract = (name: string, offers: Offers, start: () => Promise<EventStoreUnderTest>): void => {
  describe(`the event store contract, on ${name}`, () => {
    let subject: EventStoreUnderTest | undefined
    let store: EventStore | undefined

    const started = (): EventStoreUnderTest => {
      if (subject === undefined) throw new Error('The store is not started yet.')
      return subject
    }
    const shared = (): EventStore => (store ??= started().open())

    before(async () => {
      subject = await start()
    })
    after(async () => {
      await store?.close()
      await subject?.stop()
    })

    describeAppending(shared)
    describeReading(shared)
    describeFreshness(started)
    describeFeed(shared)
    if (offers.restart) describeDurability(started)
  })
}
