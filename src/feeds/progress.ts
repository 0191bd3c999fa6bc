import { Unavailable, type World } from '../ports.ts'

/**
 * How a feed gets on in this process. It is idle when it has taken in all that there is; otherwise it has something to do,
 * and every batch that it takes in shows that it gets on. One that has something to do and takes in nothing for
 * STALLED_AFTER_MS says that it is stalled, whatever the reason: a dependency that does not answer, a subscription that is
 * refused time and again, a batch or a connection that hangs.
 */

export type FeedState = {
  readonly name: string
  readonly state: 'waiting' | 'catching_up' | 'live' | 'stopped' | 'stalled'
  readonly position: bigint
  /** Why it does not get on, for the operator. */
  readonly error?: string
  /** The part that does not answer, where that is the reason. */
  readonly part?: Unavailable['part']
}

export const STALLED_AFTER_MS = 30_000
const LOOK_EVERY_MS = 1_000

export type Progress = {
  /** There is something to do from now on, until the next call of another method; it may have been so already. */
  readonly busy: () => void
  /** A batch was taken in. `live`: it was all that there is. */
  readonly tookIn: (position: bigint, live: boolean) => void
  /** It cannot go on now, and tries again. `stopped`: not for a dependency that does not answer. */
  readonly failed: (error: unknown, stopped: boolean) => void
  /** Says when it is stalled, until the signal. */
  readonly watch: (signal: AbortSignal) => Promise<void>
}

type Trouble = Pick<FeedState, 'error' | 'part'> & { readonly stopped: boolean }

/** The reason in its own words: what a port wraps around it says only which part it is. */
const troubleOf = (error: unknown, stopped: boolean): Trouble => {
  const told = error instanceof Error ? error.message : String(error)
  if (!(error instanceof Unavailable)) return { error: told, stopped }
  const cause = error.cause instanceof Error ? ` ${error.cause.message}` : ''
  return { error: `${told}${cause}`, part: error.part, stopped }
}

export const createProgress = (name: string, world: World, report: (state: FeedState) => void): Progress => {
  let position = 0n
  let busySinceMs: number | undefined
  let trouble: Trouble | undefined
  let isToldStalled = false

  const isStalled = (): boolean => busySinceMs !== undefined && world.monotonicMs() - busySinceMs >= STALLED_AFTER_MS

  const tell = (): void => {
    isToldStalled = isStalled()
    const { stopped, part, error = 'Nothing has failed; something hangs.' } = trouble ?? { stopped: false }
    const state = stopped ? 'stopped' : isToldStalled ? 'stalled' : 'waiting'
    const since = isToldStalled ? `It has not got on for ${STALLED_AFTER_MS / 1_000} s. ` : ''
    report({ name, state, position, error: `${since}${error}`, ...(part !== undefined && { part }) })
  }

  return {
    busy: () => {
      busySinceMs ??= world.monotonicMs()
    },
    tookIn: (reached, live) => {
      position = reached
      trouble = undefined
      isToldStalled = false
      busySinceMs = live ? undefined : world.monotonicMs()
      report({ name, state: live ? 'live' : 'catching_up', position })
    },
    failed: (error, stopped) => {
      busySinceMs ??= world.monotonicMs()
      trouble = troubleOf(error, stopped)
      tell()
    },
    watch: async signal => {
      while (!signal.aborted) {
        await world.sleep(LOOK_EVERY_MS, signal)
        if (!signal.aborted && isStalled() && !isToldStalled) tell()
      }
    },
  }
}
