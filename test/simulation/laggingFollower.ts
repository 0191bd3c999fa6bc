import type { Machine } from './machine.ts'
import type { StoredLog } from './storedLog.ts'

/**
 * A follower of the event store's leader that receives no events for some time. It answers the subscriptions of the processes that
 * are connected to it. Reads that require the leader are answered from the whole log.
 */
export type LaggingFollower = {
  /** The number of events that the process can receive by a subscription. */
  readonly endFor: (machine: Machine) => number
  /** The follower lacks the last `behind` events and all later ones. */
  readonly begin: (behind: number, isConnected: (machine: Machine) => boolean) => void
  /** The follower has every event again. */
  readonly end: () => void
}

export const createLaggingFollower = (log: StoredLog): LaggingFollower => {
  let lag: { readonly end: number; readonly isConnected: (machine: Machine) => boolean } | undefined
  return {
    endFor: machine => (lag?.isConnected(machine) ? lag.end : log.events.length),
    begin: (behind, isConnected) => {
      lag = { end: Math.max(0, log.events.length - behind), isConnected }
    },
    end: () => {
      lag = undefined
      log.announce()
    },
  }
}
