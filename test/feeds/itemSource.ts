import type { Database, EventStore, FeedItem } from '../../src/ports.ts'

/** A subscription and a lease for the tests of the loop that runs feeds, which need no log and no Postgres. */

/** An event store whose subscription has the items that the test provides. */
export const createSource = () => {
  const given: FeedItem[] = []
  let wake = Promise.withResolvers<void>()
  const subscribe: EventStore['subscribe'] = async function* ({ signal }) {
    signal.addEventListener('abort', () => wake.resolve(), { once: true })
    for (let next = 0; !signal.aborted; ) {
      const item = given[next]
      if (item === undefined) {
        await wake.promise
        wake = Promise.withResolvers()
      } else {
        next += 1
        yield item
      }
    }
  }
  return {
    store: { subscribe } as EventStore,
    give: (item: FeedItem) => {
      given.push(item)
      wake.resolve()
    },
  }
}

export type Work = Parameters<Database['withLease']>[2]
export type Waiting = NonNullable<Parameters<Database['withLease']>[3]>

/** A database that grants every lease. */
export const databaseThatGrants = (): Database =>
  ({
    withLease: (_: string, stop: AbortSignal, work: Work) => work({ epoch: 1n, signal: stop }),
  }) as Database
