import type { FeedItem, ReadOptions, StoredEvent, SubscribeOptions } from '../../src/ports.ts'
import { partsOf } from '../../streams/aggregate.ts'
import type { LaggingFollower } from './laggingFollower.ts'
import type { Machine } from './machine.ts'
import type { Network } from './network.ts'
import type { Random } from './random.ts'
import type { StoredLog } from './storedLog.ts'

/**
 * Reads of the simulated event store, of a stream or by a catch-up subscription, in pages of drawn sizes. Subscriptions may be
 * answered by a node that lags; other reads require the leader.
 */
export type LogReads = {
  readonly readStream: (machine: Machine, name: string, options?: ReadOptions) => AsyncGenerator<StoredEvent>
  readonly subscribe: (machine: Machine, options: SubscribeOptions) => AsyncGenerator<FeedItem>
  readonly head: (machine: Machine) => Promise<bigint>
  /** Closes the connections of all subscriptions; the clients subscribe again. */
  readonly dropSubscriptions: () => void
}

export type LogReadsDependencies = {
  readonly log: StoredLog
  readonly follower: LaggingFollower
  /** Throws Unavailable while the cluster has no leader. */
  readonly requireLeader: () => void
  readonly network: Network
  readonly random: Random
}

const READ_DEADLINE_MS = 3_000
const READ_PAGE_MAX = 7
const FEED_PAGE_MAX = 40
/** The server sends a checkpoint only after several events that the subscription excludes, not after each of them. */
const EXCLUDED_PER_CHECKPOINT_MAX = 24
const RESUBSCRIBE_MS = 120
const APPEND_NOTICE_MAX_MS = 4

export const createLogReads = ({ log, follower, requireLeader, network, random }: LogReadsDependencies): LogReads => {
  /** Grows when the connections are closed, which ends the subscriptions on them. */
  let connection = 0

  const read = <T>(machine: Machine, effect: () => T): Promise<T> =>
    network.request({ machine, server: 'event store', writes: false, deadlineMs: READ_DEADLINE_MS, effect })

  const readAtLeader = <T>(machine: Machine, effect: () => T): Promise<T> =>
    read(machine, () => {
      requireLeader()
      return effect()
    })

  /** Resolves when the process learns of the next append, or when the signal aborts. */
  const nextAppend = (machine: Machine, signal: AbortSignal): Promise<void> =>
    new Promise(resolve => {
      if (signal.aborted) return resolve()
      const end = (): void => {
        cancel()
        signal.removeEventListener('abort', end)
        resolve()
      }
      const cancel = log.onceAppended(() => void machine.deliver(random.next() * APPEND_NOTICE_MAX_MS, end))
      signal.addEventListener('abort', end)
    })

  /** Undefined if the request failed and the client has to subscribe again. */
  const readPage = (machine: Machine, first: () => number) =>
    read(machine, () => {
      const begin = first()
      const end = follower.endFor(machine)
      const events = log.events.slice(begin, Math.min(end, begin + random.integer(1, FEED_PAGE_MAX)))
      return { begin, events, isEnd: begin + events.length >= end, connection }
    }).catch((error: unknown) => {
      if (error instanceof Error && error.message.startsWith('UNKNOWN')) throw error
      return undefined
    })

  async function* subscribe(machine: Machine, options: SubscribeOptions): AsyncGenerator<FeedItem> {
    const { signal, categories, excludeTypes = [] } = options
    const isIncluded = ({ stream, type }: StoredEvent): boolean =>
      !excludeTypes.includes(type) && (categories === undefined || categories.includes(partsOf(stream).category))
    let next: number | undefined
    let isLive = false
    let connected = connection
    let excluded = 0
    let excludedPerCheckpoint = random.integer(1, EXCLUDED_PER_CHECKPOINT_MAX)
    while (!signal.aborted) {
      const page = await readPage(machine, () => next ?? log.indexAfter(options.after))
      if (signal.aborted) return
      if (page === undefined || page.connection !== connected) {
        // The connection was lost, so the client subscribes again after the last item that it has passed on.
        connected = page?.connection ?? connected
        isLive = false
        await machine.world.sleep(RESUBSCRIBE_MS, signal)
        continue
      }
      next = page.begin
      for (const event of page.events) {
        if (isIncluded(event)) yield { kind: 'event', event }
        else if ((excluded += 1) >= excludedPerCheckpoint) {
          yield { kind: 'checkpoint', position: event.position }
          excluded = 0
          excludedPerCheckpoint = random.integer(1, EXCLUDED_PER_CHECKPOINT_MAX)
        }
        if (signal.aborted) return
        next += 1
      }
      if (!page.isEnd) continue
      if (!isLive) yield { kind: 'caught_up' }
      isLive = true
      if (next >= follower.endFor(machine)) await nextAppend(machine, signal)
    }
  }

  async function* readStream(machine: Machine, name: string, options: ReadOptions = {}): AsyncGenerator<StoredEvent> {
    const { direction, limit = Number.POSITIVE_INFINITY, signal } = options
    const isBackwards = direction === 'backwards'
    let from = options.from === undefined ? undefined : Number(options.from)
    for (let left = limit; left > 0; ) {
      const page = await readAtLeader(machine, () => {
        const stream = log.stream(name)
        const size = Math.min(left, random.integer(1, READ_PAGE_MAX))
        if (!isBackwards) return stream.slice(from ?? 0, (from ?? 0) + size)
        const end = Math.min(from ?? stream.length - 1, stream.length - 1)
        return stream.slice(Math.max(0, end + 1 - size), end + 1).toReversed()
      })
      for (const event of page) {
        signal?.throwIfAborted()
        yield event
      }
      const last = page.at(-1)
      if (last === undefined || (isBackwards && last.revision === 0n)) return
      left -= page.length
      from = Number(last.revision) + (isBackwards ? -1 : 1)
    }
  }

  return {
    readStream,
    subscribe,
    head: machine => readAtLeader(machine, () => log.events.at(-1)?.position ?? 0n),
    dropSubscriptions: () => {
      connection += 1
    },
  }
}
