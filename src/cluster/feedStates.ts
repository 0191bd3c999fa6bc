import { type FeedState, STALLED_AFTER_MS } from '../feeds/feedProgress.ts'
import type { World } from '../ports.ts'
import type { SentFeedState } from './protocol.ts'

/** The process of the feeds reports their states, the API processes show them at /readyz. */

export const REPORT_EVERY_MS = 500

export const sentStateOf = (state: FeedState): SentFeedState => ({ ...state, position: String(state.position) })

/** The states when the process of the feeds has ended. */
export const interrupted = (states: readonly SentFeedState[]): readonly SentFeedState[] =>
  states.map(({ name, position }) => ({
    name,
    position,
    state: 'waiting',
    error: 'The process of the feeds has ended, and is started again.',
  }))

/** Shown before the first report. */
const UNKNOWN_FEEDS = { name: 'feeds', position: 0n }

/** A process that hangs reports nothing, so the age of its last report counts. */
export const createReportedStates = ({ monotonicMs }: Pick<World, 'monotonicMs'>) => {
  let reported: readonly FeedState[] = []
  let atMs = monotonicMs()
  const states = (): readonly FeedState[] => {
    if (monotonicMs() - atMs < STALLED_AFTER_MS) return reported
    const error = 'The process of the feeds does not report.'
    const shown = reported.length > 0 ? reported : [UNKNOWN_FEEDS]
    return shown.map(({ name, position }) => ({ name, position, state: 'stalled', error }))
  }
  return {
    receive: (sent: readonly SentFeedState[], isReport: boolean): void => {
      reported = sent.map(state => ({ ...state, position: BigInt(state.position) }))
      if (isReport) atMs = monotonicMs()
    },
    values: () => new Map(states().map(state => [state.name, state])).values(),
  }
}
