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

type Gate = {
  readonly owner: number
  readonly at: string
  readonly open: () => void
  readonly fail: (error: Error) => void
}

const settle = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

export const createScheduler = (log: MemoryLog, seed: number, { crash, lostAck }: Chances): Scheduler => {
  const random = randomOf(seed)
  const gates: Gate[] = []
  const ended = new Set<number>()
  let processes = 0

  const passGate = (owner: number, at: string): Promise<void> =>
    new Promise((open, fail) => {
      gates.push({ owner, at, open, fail })
    })

  /** A sleep is a step like any other; deadlines never expire. */
  const worldOf = (owner: number): World => ({
    ...createVirtualWorld(seed),
    sleep: (_, signal) =>
      signal === undefined
        ? passGate(owner, 'sleep')
        : new Promise(resolve => signal.addEventListener('abort', () => resolve(), { once: true })),
  })

  const openOne = (): void => {
    const open = gates.filter(({ owner }) => !ended.has(owner))
    const gate = open[Math.floor(random() * open.length)]
    if (gate === undefined) return
    if (random() < crash) return void ended.add(gate.owner)
    gates.splice(gates.indexOf(gate), 1)
    if (gate.at === 'appended' && random() < lostAck) gate.fail(new Unavailable('event store', 'unknown', undefined))
    else gate.open()
  }

  return {
    process: () => {
      processes += 1
      const owner = processes
      return createLedger(
        log.open(({ at }) => passGate(owner, at)),
        worldOf(owner),
      )
    },
    run: async calls => {
      const left = new Set(calls)
      for (const call of calls) void call.catch(() => undefined).finally(() => left.delete(call))
      await settle()
      while (left.size > 0 && gates.some(({ owner }) => !ended.has(owner))) {
        openOne()
        await settle()
      }
    },
  }
}
