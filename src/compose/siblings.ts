import type { SlotCounter } from '../http/admission/localSlots.ts'
import type { RateCounter } from '../ports.ts'
import type { Receiving } from '../http/server/server.ts'
import type { FeedStates } from './feeds.ts'

/** The state that a process of a service shares with the other processes of the service on this machine. */
export type Siblings = {
  /** How many processes serve the API. */
  readonly apiProcesses: number
  /** Requests of callers and networks, in progress and in their windows, of all processes together. */
  readonly counter: RateCounter
  readonly slots: SlotCounter
  /** The feeds, which run in a process of their own. */
  readonly feeds: Pick<FeedStates, 'values'>
  /** Whether all processes of the service on this machine answer its primary process. */
  readonly areAnswering: () => boolean
  /** Gives the server the connections that the primary process accepts for this one. */
  readonly serve: <T extends Receiving>(server: T) => T
  /** The metrics of all processes of the service on this machine, in the text format of Prometheus. */
  readonly metrics: () => Promise<string>
  /** The port of the primary process on which it serves the embedded issuer; undefined without one. */
  readonly issuerPort: number | undefined
  /** Receives the function by which this process revokes a token or a grant that the issuer has revoked. */
  readonly onRevoke: (revoke: (name: string) => Promise<void>) => void
}
