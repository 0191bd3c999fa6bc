import type { Appended, ExpectedRevision, NewEvent, StoredEvent } from '../../src/ports.ts'
import { EPOCH_MS } from './machine.ts'
import type { Random } from './random.ts'
import type { Timeline } from './timeline.ts'

/** The events of the simulated event store, in memory: one log, and its streams. */
export type StoredLog = {
  readonly events: readonly StoredEvent[]
  readonly stream: (name: string) => readonly StoredEvent[]
  /** The revision of the newest event of a stream. */
  readonly revisionOf: (name: string) => ExpectedRevision
  /** The index of the first event after a position. Throws if the position is that of no event before the end. */
  readonly indexAfter: (from: bigint | 'start') => number
  readonly append: (name: string, sent: readonly NewEvent[]) => Appended
  /** Resets the log to an older backup with its first events. With `isGrown` new streams have been added since. */
  readonly restore: (kept: number, isGrown: boolean) => void
  /** Calls the listener once, at the next append or announcement. The result cancels this. */
  readonly onceAppended: (listener: () => void) => () => void
  /** Notifies the listeners without an append. */
  readonly announce: () => void
}

export type StoredLogDependencies = {
  readonly timeline: Timeline
  readonly random: Random
  /** The time of the server's clock when the run begins. */
  readonly epochMs?: number
}

const FIRST_POSITION = 733
/** Positions are not consecutive, as in EventStoreDB. */
const GAP_MIN = 60
const GAP_MAX = 900
const COPIED_STREAMS_MAX = 3

export const createStoredLog = ({ timeline, random, epochMs = EPOCH_MS }: StoredLogDependencies): StoredLog => {
  const log: StoredEvent[] = []
  const streams = new Map<string, StoredEvent[]>()
  const indexOfPosition = new Map<bigint, number>()
  const listeners = new Set<() => void>()
  let position = BigInt(FIRST_POSITION)

  const announce = (): void => {
    const notified = [...listeners]
    listeners.clear()
    for (const listener of notified) listener()
  }

  const append = (name: string, sent: readonly NewEvent[]): Appended => {
    const stream = streams.get(name) ?? []
    for (const event of sent) {
      position += BigInt(random.integer(GAP_MIN, GAP_MAX))
      const storedAt = new Date(epochMs + timeline.nowMs()).toISOString()
      const stored = { ...structuredClone(event), stream: name, revision: BigInt(stream.length), position, storedAt }
      indexOfPosition.set(position, log.length)
      log.push(stored)
      stream.push(stored)
    }
    streams.set(name, stream)
    announce()
    return { ok: true, revision: BigInt(stream.length - 1), position }
  }

  const truncate = (kept: number): void => {
    for (const { stream: name, position: lost } of log.splice(kept)) {
      indexOfPosition.delete(lost)
      const left = (streams.get(name) ?? []).filter(event => event.position !== lost)
      streams.set(name, left)
    }
  }

  /** Adds streams that are copies of existing ones under other ids. */
  const grow = (): void => {
    const orders = log.filter(({ type }) => type === 'OrderCreated').slice(0, COPIED_STREAMS_MAX)
    for (const [index, event] of orders.entries()) {
      const id = event.id.replace(/^.{8}/, `0000000${index}`)
      append(event.stream.replace(/.{6}$/, `00000${index}`), [{ ...event, id }])
    }
  }

  return {
    events: log,
    stream: name => streams.get(name) ?? [],
    revisionOf: name => streams.get(name)?.at(-1)?.revision ?? 'no_stream',
    indexAfter: from => {
      if (from === 'start') return 0
      const index = indexOfPosition.get(from)
      if (index !== undefined) return index + 1
      if (from > position) return log.length
      throw new Error('UNKNOWN: Exception was thrown by handler.')
    },
    append,
    restore: (kept, isGrown) => {
      truncate(kept)
      if (isGrown) grow()
    },
    onceAppended: listener => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    announce,
  }
}
