import type { World } from '../ports.ts'
import type { Account } from './account.ts'
import { currentAccount, workFor } from './currentAccount.ts'
import { FairQueue } from './fairQueue.ts'

/**
 * The time of the event loop, shared out among short pieces of synchronous work, such as the next write to each of
 * thousands of event streams. Tenants take turns, and are charged by time. Each turn of the event loop runs pieces for
 * about a millisecond, so requests are served in between. A request passes through many turns of the loop, so beside
 * other tenants there is a pause of several milliseconds between them.
 */

const SLICE_MS = 1
const PAUSE_MS = 8
/** About the time of one write to a stream, which costs one unit of the queue. */
const UNIT_MS = 0.05

/**
 * Runs the work when it is the turn of the account, and resolves to its result. Resolves to undefined, without running
 * it, if the signal aborts first.
 */
export type RunInTurn = <T>(account: Account, work: () => T | Promise<T>, signal: AbortSignal) => Promise<T | undefined>

type Piece = { readonly account: Account; readonly isAlone: () => boolean; readonly run: () => void }

/** Long because its functions share the queue. */
export const createLoopTime = ({ monotonicMs, sleep }: Pick<World, 'monotonicMs' | 'sleep'>): RunInTurn => {
  const queue = new FairQueue<Piece>()
  let isScheduled = false

  /** Whether the tenant of the piece that it ran is alone. */
  const runNext = (): boolean => {
    const piece = queue.take(() => true)
    if (piece === undefined) return true
    const startedAtMs = monotonicMs()
    workFor(piece.account, piece.run)
    queue.end(piece.account, (monotonicMs() - startedAtMs) / UNIT_MS)
    return piece.isAlone()
  }
  const runSlice = async (): Promise<void> => {
    const untilMs = monotonicMs() + SLICE_MS
    let isAlone = true
    do isAlone = runNext() && isAlone
    while (queue.size > 0 && monotonicMs() < untilMs)
    if (!isAlone) await sleep(PAUSE_MS)
    isScheduled = false
    schedule()
  }
  const schedule = (): void => {
    if (isScheduled || queue.size === 0) return
    isScheduled = true
    setImmediate(() => void runSlice())
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
      const piece: Piece = { account, isAlone: currentAccount()?.isAlone ?? (() => true), run }
      queue.add(piece)
      signal.addEventListener('abort', leave, { once: true })
      schedule()
    })
}
