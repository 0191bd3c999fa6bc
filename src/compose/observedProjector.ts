import type { FeedState } from '../feeds/feedLoop.ts'
import type { ObservedProjector } from '../processes/subscriptions/dependencies.ts'

/** Tells other feeds of this process when the projector has changed rows, so they need not look for changes. */

/** States of the feed that has the lease and processes batches. */
const HERE: ReadonlySet<FeedState['state'] | undefined> = new Set(['catching_up', 'live'])

export type ProjectorObserver = ObservedProjector & {
  readonly changed: () => void
  /** To be called with the states of all feeds of this process. */
  readonly reported: (state: FeedState) => void
}

export const observeProjector = (): ProjectorObserver => {
  const listeners = new Set<() => void>()
  let newest: FeedState | undefined
  const changed = (): void => {
    for (const listener of listeners) listener()
  }
  return {
    isHere: () => HERE.has(newest?.state),
    listen: listener => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    changed,
    reported: state => {
      if (state.name !== 'projector') return
      newest = state
      changed()
    },
  }
}
