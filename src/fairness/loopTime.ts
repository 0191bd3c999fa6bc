import type { World } from '../ports.ts'
import type { Account } from './account.ts'
import { workFor } from './currentAccount.ts'
import { FairQueue } from './fairQueue.ts'

/**
 * The time of the event loop, shared out among short pieces of synchronous work, such as the next write to each of
 * thousands of event streams. Tenants take turns, and are charged by time. Each turn of the event loop runs pieces for
 * about a millisecond, so that requests are served in between.
 */

const SLICE_MS = 1
/** About the time of one write to a stream, which costs one unit of the queue. */
const UNIT_MS = 0.05

/**
 * Runs the work when it is the turn of the account, and resolves to its result. Resolves to undefined, without running
 * it, if the signal aborts first.
 */
export type RunInTurn = <T>(account: Account, work: () => T | Promise<T>, signal: AbortSignal) => Promise<T | undefined>

type Piece = { readonly account: Account; readonly run: () => void }

/** Long because its functions share the queue. */
export const createLoopTime = ({ monotonicMs }: Pick<World, 'monotonicMs'>): RunInTurn => {
  const queue = new FairQueue<Piece>()
  let isScheduled = false

  const runNext = (): void => {
    const piece = queue.take(() => true)
    if (piece === undefined) return
    const startedAtMs = monotonicMs()
    workFor(piece.account, piece.run)
    queue.end(piece.account, (monotonicMs() - startedAtMs) / UNIT_MS)
  }
  const runSlice = (): void => {
    const untilMs = monotonicMs() + SLICE_MS
    do runNext()
    while (queue.size > 0 && monotonicMs() < untilMs)
    isScheduled = false
    schedule()
  }
  const schedule = (): void => {
    if (isScheduled || queue.size === 0) return
    isScheduled = true
    setImmediate(runSlice)
  }

  return <T>(account: Account, work: () => T | Promise<T>, signal: AbortSignal) =>
    new Promise<T | undefined>(resolve => {
      if (signal.aborted) return resolve(undefined)
      const leave = (): void => {
        if (queue.remove(piece)) resolve(undefined)
      }
      const run = (): void => {
        signal.removeEventListener('abort', leave)
        // An async function runs at once as far as its first await, and turns an error into a rejection.
        const result = (async () => work())()
        resolve(result)
      }
      const piece: Piece = { account, run }
      queue.add(piece)
      signal.addEventListener('abort', leave, { once: true })
      schedule()
    })
}
