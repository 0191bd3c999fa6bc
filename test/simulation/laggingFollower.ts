import type { Machine } from './machine.ts'
import type { StoredLog } from './storedLog.ts'

/**
 * A node of the event store that receives no events for some time, such as a former leader that does not know of the next one. It
 * answers the subscriptions of the processes that are connected to it. Other reads are answered by the leader.
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
      if (lag === undefined) return
      lag = undefined
      log.announce()
    },
  }
}
