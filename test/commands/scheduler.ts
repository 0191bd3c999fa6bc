import { createLedger, type Ledger } from '../../src/commands/commandHandler.ts'
import { Unavailable, type World } from '../../src/ports.ts'
import type { MemoryLog } from '../support/memoryStore.ts'
import { createVirtualWorld, randomOf } from '../support/virtualWorld.ts'

/**
 * Runs several processes on one log, one step at a time, in an order that a seed decides. Each call of the store is
 * suspended before it is executed and before it is acknowledged; the scheduler resumes one call after the other. A
 * suspended process may crash (its calls are never resumed), and an acknowledgement may be lost.
 */
export type Scheduler = {
  /** A process: a ledger of its own, with its own cache and its own queue. */
  readonly process: () => Ledger
  /** Resumes calls until every one has ended or belongs to a process that crashed. */
  readonly run: (calls: readonly Promise<unknown>[]) => Promise<void>
}

export type Chances = { readonly crash: number; readonly lostAck: number }

type Suspended = {
  readonly owner: number
  readonly at: string
  readonly resume: () => void
  readonly fail: (error: Error) => void
}

const settle = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

export const createScheduler = (log: MemoryLog, seed: number, { crash, lostAck }: Chances): Scheduler => {
  const random = randomOf(seed)
  const suspended: Suspended[] = []
  const crashed = new Set<number>()
  let processes = 0

  const suspend = (owner: number, at: string): Promise<void> =>
    new Promise((resume, fail) => {
      suspended.push({ owner, at, resume, fail })
    })

  /** A world whose sleeps are steps like any other, and whose deadlines never expire. */
  const worldOf = (owner: number): World => ({
    ...createVirtualWorld(seed),
    sleep: (_, signal) =>
      signal === undefined
        ? suspend(owner, 'sleep')
        : new Promise(resolve => signal.addEventListener('abort', () => resolve(), { once: true })),
  })

  const resumeOne = (): void => {
    const running = suspended.filter(({ owner }) => !crashed.has(owner))
    const call = running[Math.floor(random() * running.length)]
    if (call === undefined) return
    if (random() < crash) return void crashed.add(call.owner)
    suspended.splice(suspended.indexOf(call), 1)
    if (call.at === 'appended' && random() < lostAck) call.fail(new Unavailable('event store', { effect: 'unknown' }))
    else call.resume()
  }

  return {
    process: () => {
      processes += 1
      const owner = processes
      return createLedger(
        log.open(({ at }) => suspend(owner, at)),
        worldOf(owner),
      )
    },
    run: async calls => {
      const left = new Set(calls)
      for (const call of calls) void call.catch(() => undefined).finally(() => left.delete(call))
      await settle()
      while (left.size > 0 && suspended.some(({ owner }) => !crashed.has(owner))) {
        resumeOne()
        await settle()
      }
    },
  }
}
