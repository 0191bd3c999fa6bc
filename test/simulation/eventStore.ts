import type {
  Appended,
  EventStore,
  ExpectedRevision,
  FeedItem,
  NewEvent,
  ReadOptions,
  StoredEvent,
  SubscribeOptions,
} from '../../src/ports.ts'
import { partsOf } from '../../streams/aggregate.ts'
import { EPOCH_MS, type Machine } from './machine.ts'
import { type Network, NO_ANSWER } from './network.ts'
import type { Random } from './random.ts'
import type { Timeline } from './timeline.ts'

/**
 * One log for all processes of a run, as unkind as a real EventStoreDB cluster: positions have gaps and no other position
 * is taken, an idempotent resend is recognised by ids alone, and while the leader changes an append may be decided and
 * not yet readable.
 */
export type SimulatedLog = {
  readonly events: readonly StoredEvent[]
  readonly stream: (name: string) => readonly StoredEvent[]
  readonly open: (machine: Machine) => EventStore
  /**
   * The log as an older backup has it: its first events alone. It may have grown since, beyond its former end: by streams
   * that some of its own are copied to.
   */
  readonly restore: (kept: number, isGrown: boolean) => void
  /** Appends from outside, as another build or another program would. */
  readonly plant: (stream: string, event: NewEvent) => void
  /** For this time no append is answered; each that is under way is lost, or comes to be at the end of it. */
  readonly changeLeader: (durationMs: number) => void
  /** Ends every subscription, as a server that closes its connections does; clients subscribe again. */
  readonly dropSubscriptions: () => void
}

export type LogDependencies = {
  readonly timeline: Timeline
  readonly random: Random
  readonly network: Network
  /** The time of the server's clock when the run begins. */
  readonly epochMs?: number
}

const FIRST_POSITION = 733
const GAP_MAX = 900
const APPEND_BYTES_MAX = 1_048_576
const APPEND_DEADLINE_MS = 3_000
const READ_DEADLINE_MS = 3_000
const READ_PAGE_MAX = 7
const FEED_PAGE_MAX = 40
/** A server tells how far it has searched only now and then: it does not say so for each event that nobody wanted. */
const SEARCHED_MAX = 24
const RESUBSCRIBE_MS = 120
const WAKE_MAX_MS = 4
const ELECTED_CHANCE = 0.6
const COPIED_MAX = 3

type Decided = Appended | typeof NO_ANSWER
type Pending = { readonly sent: readonly NewEvent[] }

class AppendTooLarge extends Error {
  readonly type = 'maximum-append-size-exceeded'
}

export const createLog = ({ timeline, random, network, epochMs = EPOCH_MS }: LogDependencies): SimulatedLog => {
  const log: StoredEvent[] = []
  const streams = new Map<string, StoredEvent[]>()
  const indexOfPosition = new Map<bigint, number>()
  /** Decided by the old leader, not yet readable at the new one. */
  const pending = new Map<string, Pending>()
  const waiting = new Set<() => void>()
  let position = BigInt(FIRST_POSITION)
  let electionEndsMs = 0
  let generation = 0

  const wakeAll = (): void => {
    const woken = [...waiting]
    waiting.clear()
    for (const wake of woken) wake()
  }

  const record = (name: string, sent: readonly NewEvent[]): Appended => {
    const stream = streams.get(name) ?? []
    for (const event of sent) {
      position += BigInt(random.integer(60, GAP_MAX))
      const storedAt = new Date(epochMs + timeline.nowMs()).toISOString()
      const stored = { ...structuredClone(event), stream: name, revision: BigInt(stream.length), position, storedAt }
      indexOfPosition.set(position, log.length)
      log.push(stored)
      stream.push(stored)
    }
    streams.set(name, stream)
    wakeAll()
    return { ok: true, revision: BigInt(stream.length - 1), position }
  }

  const revisionOf = (name: string): ExpectedRevision => streams.get(name)?.at(-1)?.revision ?? 'no_stream'

  const decide = (name: string, sent: readonly NewEvent[], expected: ExpectedRevision): Appended => {
    const stream = streams.get(name) ?? []
    if (pending.has(name)) return { ok: false, actual: revisionOf(name) }
    const after = expected === 'no_stream' ? -1 : Number(expected)
    if (after === stream.length - 1) return record(name, sent)
    const there = stream.slice(after + 1, after + 1 + sent.length)
    const last = there.at(-1)
    const isResend = there.length === sent.length && there.every(({ id }, n) => id === sent[n]?.id)
    if (isResend && last) return { ok: true, revision: last.revision, position: last.position }
    return { ok: false, actual: revisionOf(name) }
  }

  /** Under a leader that is going: the append is lost, or it is decided and will be readable under the next leader. */
  const decideUnderElection = (name: string, sent: readonly NewEvent[], expected: ExpectedRevision): Decided => {
    const fits = revisionOf(name) === expected && !pending.has(name)
    if (fits && random.chance(ELECTED_CHANCE)) {
      pending.set(name, { sent })
      timeline.after(electionEndsMs - timeline.nowMs(), () => {
        pending.delete(name)
        record(name, sent)
      })
    }
    return NO_ANSWER
  }

  const append = (name: string, sent: readonly NewEvent[], expected: ExpectedRevision): Decided => {
    if (JSON.stringify(sent).length > APPEND_BYTES_MAX) throw new AppendTooLarge('An append of more than one mebibyte.')
    if (timeline.nowMs() >= electionEndsMs) return decide(name, sent, expected)
    // A second append to a stream whose newest events are decided and not readable is refused at once.
    if (pending.has(name)) return { ok: false, actual: revisionOf(name) }
    return decideUnderElection(name, sent, expected)
  }

  const appendFrom = (machine: Machine, name: string, sent: readonly NewEvent[], expected: ExpectedRevision) =>
    network.request<Appended>({
      machine,
      server: 'event store',
      writes: true,
      deadlineMs: APPEND_DEADLINE_MS,
      effect: () => append(name, sent, expected),
    })

  const after = (from: bigint | 'start'): number => {
    if (from === 'start') return 0
    const index = indexOfPosition.get(from)
    if (index !== undefined) return index + 1
    if (from > position) return log.length
    throw new Error('UNKNOWN: Exception was thrown by handler.')
  }

  /** Resolves with the next append, as this process comes to know of it, or with the signal. */
  const changed = (machine: Machine, signal: AbortSignal): Promise<void> =>
    new Promise(resolve => {
      if (signal.aborted) return resolve()
      const end = (): void => {
        waiting.delete(wake)
        signal.removeEventListener('abort', end)
        resolve()
      }
      const wake = (): void => void machine.deliver(random.next() * WAKE_MAX_MS, end)
      waiting.add(wake)
      signal.addEventListener('abort', end)
    })

  async function* subscribe(machine: Machine, options: SubscribeOptions): AsyncGenerator<FeedItem> {
    const { signal, categories, excludeTypes: without = [] } = options
    const isWanted = ({ stream, type }: StoredEvent): boolean =>
      !without.includes(type) && (categories === undefined || categories.includes(partsOf(stream).category))
    let next: number | undefined
    let live = false
    let seen = generation
    let unwanted = 0
    let searched = random.integer(1, SEARCHED_MAX)
    while (!signal.aborted) {
      const page = await network
        .request({
          machine,
          server: 'event store',
          writes: false,
          deadlineMs: READ_DEADLINE_MS,
          effect: () => {
            const begin = next ?? after(options.after)
            const events = log.slice(begin, begin + random.integer(1, FEED_PAGE_MAX))
            return { begin, events, isEnd: begin + events.length === log.length, generation }
          },
        })
        .catch((error: unknown) => {
          if (error instanceof Error && error.message.startsWith('UNKNOWN')) throw error
          return undefined
        })
      if (signal.aborted) return
      if (page === undefined || page.generation !== seen) {
        // The connection was lost: the client subscribes again behind the last item that it handed out.
        seen = page?.generation ?? seen
        live = false
        await machine.world.sleep(RESUBSCRIBE_MS, signal)
        continue
      }
      next = page.begin
      for (const event of page.events) {
        if (isWanted(event)) yield { kind: 'event', event }
        else if ((unwanted += 1) >= searched) {
          yield { kind: 'checkpoint', position: event.position }
          unwanted = 0
          searched = random.integer(1, SEARCHED_MAX)
        }
        if (signal.aborted) return
        next += 1
      }
      if (!page.isEnd) continue
      if (!live) yield { kind: 'caught_up' }
      live = true
      if (next >= log.length) await changed(machine, signal)
    }
  }

  async function* readStream(machine: Machine, name: string, options: ReadOptions = {}): AsyncGenerator<StoredEvent> {
    const { direction, limit = Number.POSITIVE_INFINITY, signal } = options
    const backwards = direction === 'backwards'
    let from = options.from === undefined ? undefined : Number(options.from)
    for (let left = limit; left > 0; ) {
      const page = await network.request({
        machine,
        server: 'event store',
        writes: false,
        deadlineMs: READ_DEADLINE_MS,
        effect: () => {
          const stream = streams.get(name) ?? []
          const size = Math.min(left, random.integer(1, READ_PAGE_MAX))
          if (!backwards) return stream.slice(from ?? 0, (from ?? 0) + size)
          const end = Math.min(from ?? stream.length - 1, stream.length - 1)
          return stream.slice(Math.max(0, end + 1 - size), end + 1).toReversed()
        },
      })
      for (const event of page) {
        signal?.throwIfAborted()
        yield event
      }
      const last = page.at(-1)
      if (last === undefined || (backwards && last.revision === 0n)) return
      left -= page.length
      from = Number(last.revision) + (backwards ? -1 : 1)
    }
  }

  return {
    events: log,
    stream: name => streams.get(name) ?? [],
    open: machine => ({
      append: (name, sent, expected) => appendFrom(machine, name, sent, expected),
      readStream: (name, options) => readStream(machine, name, options),
      subscribe: options => subscribe(machine, options),
      head: () =>
        network.request({
          machine,
          server: 'event store',
          writes: false,
          deadlineMs: READ_DEADLINE_MS,
          effect: () => log.at(-1)?.position ?? 0n,
        }),
      close: () => Promise.resolve(),
    }),
    restore: (kept, isGrown) => {
      for (const { stream: name, position: lost } of log.splice(kept)) {
        indexOfPosition.delete(lost)
        streams.set(
          name,
          (streams.get(name) ?? []).filter(event => event.position !== lost),
        )
      }
      generation += 1
      const orders = log.filter(({ type }) => type === 'OrderCreated').slice(0, COPIED_MAX)
      for (const [index, event] of isGrown ? orders.entries() : []) {
        const id = event.id.replace(/^.{8}/, `0000000${index}`)
        record(event.stream.replace(/.{6}$/, `00000${index}`), [{ ...event, id }])
      }
    },
    plant: (stream, event) => void record(stream, [event]),
    changeLeader: durationMs => {
      electionEndsMs = Math.max(electionEndsMs, timeline.nowMs() + durationMs)
    },
    dropSubscriptions: () => {
      generation += 1
    },
  }
}
