import type { Database } from '../../src/ports.ts'
import type { Machine } from './machine.ts'
import type { Random } from './random.ts'

/** The leases of the simulated database: locks that a process holds with its session, with an epoch for each new holder. */
export type Leases = {
  readonly withLease: (machine: Machine) => Database['withLease']
  /** Releases the leases of the process at once. The process notices it some time later. */
  readonly endSessions: (machine: Machine) => void
  /** The number of leases that were acquired after another holder. */
  readonly takeOvers: () => TakeOvers
  /** Aborts the signals of all holders: a signal that is never aborted stays in memory until the simulation exits. */
  readonly end: () => void
}

export type LeasesDependencies = {
  readonly random: Random
  /** Sends a request of the process to the database, which has this effect there. */
  readonly request: <T>(machine: Machine, effect: () => Promise<T>) => Promise<T>
}

export type TakeOvers = {
  readonly all: number
  /** Those in which the holder before was of another build. */
  readonly betweenBuilds: number
}

type Lease = { holder: Machine | undefined; lastBuild: string; epoch: bigint; lose: () => void }
type OnWaiting = Parameters<Database['withLease']>[3]

/** A process learns within this time that a lock was released. It also asks again at intervals, without any notice. */
const RELEASE_NOTICE_MAX_MS = 500
const LOCK_POLL_MS = 2_000
const LOSS_NOTICE_MAX_MS = 4_000

export const createLeases = ({ random, request }: LeasesDependencies): Leases => {
  const { acquire, release, leasesOf, leaseOf, takeOvers } = createLeaseTable()
  const waiting = new Set<() => void>()
  const signals = new Set<AbortController>()

  const releaseAndNotify = (lease: Lease): void => {
    release(lease)
    const woken = [...waiting]
    waiting.clear()
    for (const wake of woken) wake()
  }

  /** Resolves some time after any lock was released, or when it is time to ask again. */
  const waitForRelease = (machine: Machine, stop: AbortSignal): Promise<void> =>
    new Promise(resolve => {
      const end = (): void => {
        waiting.delete(wake)
        stop.removeEventListener('abort', end)
        cancel()
        resolve()
      }
      const wake = (): void => void machine.deliver(random.next() * RELEASE_NOTICE_MAX_MS, end)
      const cancel = machine.deliver(LOCK_POLL_MS * (1 + random.next()), end)
      waiting.add(wake)
      stop.addEventListener('abort', end)
    })

  /** A session that asks for the lock. If the process no longer waits for the answer, the session ends and releases it. */
  const askForLock = async (machine: Machine, name: string): Promise<bigint | undefined> => {
    let isOpen = true
    let acquired: bigint | undefined
    const effect = async (): Promise<bigint | undefined> => (acquired = isOpen ? acquire(machine, name) : undefined)
    try {
      return await request(machine, effect)
    } catch {
      isOpen = false
      const lease = leaseOf(name)
      if (acquired !== undefined && lease.epoch === acquired) releaseAndNotify(lease)
      return undefined
    }
  }

  const waitForLock = async (
    machine: Machine,
    name: string,
    stop: AbortSignal,
    onWaiting: OnWaiting,
  ): Promise<bigint | undefined> => {
    while (!stop.aborted) {
      const epoch = await askForLock(machine, name)
      if (epoch !== undefined) return epoch
      onWaiting?.(undefined)
      await waitForRelease(machine, stop)
    }
    return undefined
  }

  const withLease =
    (machine: Machine): Database['withLease'] =>
    async (name, stop, work, onWaiting) => {
      const epoch = await waitForLock(machine, name, stop, onWaiting)
      if (epoch === undefined) return
      const lost = new AbortController()
      signals.add(lost)
      const lease = leaseOf(name)
      lease.lose = () => lost.abort(new Error('The session that held the lock ended.'))
      try {
        await work({ epoch, signal: AbortSignal.any([stop, lost.signal]) })
      } finally {
        if (lease.epoch === epoch) releaseAndNotify(lease)
      }
    }

  return {
    withLease,
    endSessions: machine => {
      for (const lease of leasesOf(machine)) {
        releaseAndNotify(lease)
        const { lose } = lease
        machine.deliver(random.next() * LOSS_NOTICE_MAX_MS, lose)
      }
    },
    takeOvers,
    end: () => {
      for (const signal of signals) signal.abort()
    },
  }
}

/** The holders and epochs of all leases, as the server knows them. */
const createLeaseTable = () => {
  const leases = new Map<string, Lease>()
  let all = 0
  let betweenBuilds = 0

  const leaseOf = (name: string): Lease => {
    const lease = leases.get(name) ?? { holder: undefined, lastBuild: '', epoch: 0n, lose: () => undefined }
    leases.set(name, lease)
    return lease
  }

  return {
    leaseOf,
    leasesOf: (machine: Machine): readonly Lease[] => [...leases.values()].filter(({ holder }) => holder === machine),
    /** Resolves to the new epoch; undefined if the lease has a holder. */
    acquire: (machine: Machine, name: string): bigint | undefined => {
      const lease = leaseOf(name)
      // The session of a process that has ended is closed, so its earlier requests have no effect.
      if (lease.holder !== undefined || !machine.isAlive()) return undefined
      if (lease.epoch > 0n) {
        all += 1
        if (lease.lastBuild !== machine.build) betweenBuilds += 1
      }
      lease.holder = machine
      lease.lastBuild = machine.build
      lease.epoch += 1n
      return lease.epoch
    },
    release: (lease: Lease): void => {
      lease.holder = undefined
    },
    takeOvers: () => ({ all, betweenBuilds }),
  }
}
