import {
  type Appended,
  type EventStore,
  type ExpectedRevision,
  type NewEvent,
  type StoredEvent,
  Unavailable,
} from '../../src/ports.ts'
import { createLaggingFollower, type LaggingFollower } from './laggingFollower.ts'
import { createLogReads } from './logReads.ts'
import type { Machine } from './machine.ts'
import { type Network, NO_ANSWER } from './network.ts'
import type { Random } from './random.ts'
import { createStoredLog, type StoredLog, type StoredLogDependencies } from './storedLog.ts'
import type { Timeline } from './timeline.ts'

/**
 * The event store of a run, used by all of its processes, as inconvenient as a real EventStoreDB cluster: positions have gaps, and
 * only positions of events can be read from; an idempotent resend is recognised by the ids alone; and during an election an
 * append may be decided and not yet readable.
 */
export type SimulatedLog = {
  readonly events: readonly StoredEvent[]
  readonly stream: (name: string) => readonly StoredEvent[]
  readonly open: (machine: Machine) => EventStore
  /**
   * Resets the log to an older backup, with its first events only. With `isGrown` it has grown again beyond its former end, by
   * copies of some of its streams.
   */
  readonly restore: (kept: number, isGrown: boolean) => void
  /** Appends an event from outside of the service, like another build or another program. */
  readonly plant: (stream: string, event: NewEvent) => void
  /** The cluster has no leader for this time: appends and reads that require one fail at once, without an effect. */
  readonly loseLeader: (durationMs: number) => void
  /** Begins an election of this duration. Its appends get no answer: each is lost, or is readable at the end. */
  readonly changeLeader: (durationMs: number) => void
  /** Connects processes to a follower that lacks the last `behind` events and all later ones, until `endLag`. */
  readonly beginLag: LaggingFollower['begin']
  readonly endLag: () => void
  /** Closes the connections of all subscriptions; the clients subscribe again. */
  readonly dropSubscriptions: () => void
}

export type LogDependencies = StoredLogDependencies & { readonly network: Network }

const APPEND_BYTES_MAX = 1_048_576
const APPEND_DEADLINE_MS = 3_000
const SURVIVES_ELECTION_CHANCE = 0.6

type Decided = Appended | typeof NO_ANSWER

class AppendTooLarge extends Error {
  readonly type = 'maximum-append-size-exceeded'
}

/** An append at the expected revision. The same events at the same place are an idempotent resend. */
const appendAt = (log: StoredLog, name: string, sent: readonly NewEvent[], expected: ExpectedRevision): Appended => {
  const stream = log.stream(name)
  const after = expected === 'no_stream' ? -1 : Number(expected)
  if (after === stream.length - 1) return log.append(name, sent)
  const stored = stream.slice(after + 1, after + 1 + sent.length)
  const last = stored.at(-1)
  const isResend = stored.length === sent.length && stored.every(({ id }, index) => id === sent[index]?.id)
  if (isResend && last) return { ok: true, revision: last.revision, position: last.position }
  return { ok: false, actual: log.revisionOf(name) }
}

/** Whether the cluster has a leader. */
const createLeadership = (timeline: Timeline) => {
  let leaderFromMs = 0
  return {
    lose: (durationMs: number): void => {
      leaderFromMs = timeline.nowMs() + durationMs
    },
    /** Throws Unavailable with no effect while there is no leader. */
    require: (): void => {
      if (timeline.nowMs() >= leaderFromMs) return
      throw new Unavailable('event store', { effect: 'none', cause: new Error('The cluster has no leader.') })
    },
  }
}

/** Appends at the server, and the elections of its leader. */
const createAppends = (
  log: StoredLog,
  { timeline, random }: { readonly timeline: Timeline; readonly random: Random },
) => {
  /** Streams with events that the old leader has decided and that are not yet readable at the new one. */
  const pending = new Set<string>()
  let electionEndsMs = 0

  /** During an election the append is lost, or it is decided and becomes readable under the next leader. */
  const appendInElection = (name: string, sent: readonly NewEvent[], expected: ExpectedRevision): Decided => {
    if (log.revisionOf(name) === expected && random.chance(SURVIVES_ELECTION_CHANCE)) {
      pending.add(name)
      timeline.after(electionEndsMs - timeline.nowMs(), () => {
        pending.delete(name)
        log.append(name, sent)
      })
    }
    return NO_ANSWER
  }

  return {
    append: (name: string, sent: readonly NewEvent[], expected: ExpectedRevision): Decided => {
      if (JSON.stringify(sent).length > APPEND_BYTES_MAX)
        throw new AppendTooLarge('An append of more than one mebibyte.')
      // An append to a stream with events that are decided and not yet readable is refused at once.
      if (pending.has(name)) return { ok: false, actual: log.revisionOf(name) }
      if (timeline.nowMs() < electionEndsMs) return appendInElection(name, sent, expected)
      return appendAt(log, name, sent, expected)
    },
    changeLeader: (durationMs: number): void => {
      electionEndsMs = Math.max(electionEndsMs, timeline.nowMs() + durationMs)
    },
  }
}

export const createLog = (dependencies: LogDependencies): SimulatedLog => {
  const { timeline, random, network } = dependencies
  const log = createStoredLog(dependencies)
  const appends = createAppends(log, dependencies)
  const follower = createLaggingFollower(log)
  const leadership = createLeadership(timeline)
  const { readStream, subscribe, head, dropSubscriptions } = createLogReads({
    log,
    follower,
    requireLeader: leadership.require,
    network,
    random,
  })

  const appendFrom = (machine: Machine, name: string, sent: readonly NewEvent[], expected: ExpectedRevision) =>
    network.request<Appended>({
      machine,
      server: 'event store',
      writes: true,
      deadlineMs: APPEND_DEADLINE_MS,
      effect: () => {
        leadership.require()
        return appends.append(name, sent, expected)
      },
    })

  return {
    events: log.events,
    stream: log.stream,
    open: machine => ({
      append: (name, sent, expected) => appendFrom(machine, name, sent, expected),
      readStream: (name, options) => readStream(machine, name, options),
      subscribe: options => subscribe(machine, options),
      head: () => head(machine),
      close: () => Promise.resolve(),
    }),
    restore: (kept, isGrown) => {
      dropSubscriptions()
      log.restore(kept, isGrown)
    },
    plant: (stream, event) => void log.append(stream, [event]),
    loseLeader: leadership.lose,
    changeLeader: appends.changeLeader,
    beginLag: (behind, isConnected) => {
      follower.begin(behind, isConnected)
      dropSubscriptions()
    },
    endLag: follower.end,
    dropSubscriptions,
  }
}
