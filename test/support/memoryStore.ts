import { partsOf } from '../../streams/aggregate.ts'
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

/** A point in an operation at which a test may delay it, fail it, or stop it. */
export type Step = {
  /** `append` and `read` are before the operation; `appended` is between its effect and its acknowledgement. */
  readonly at: 'append' | 'appended' | 'read'
  readonly stream: string
}
export type OnStep = (step: Step) => Promise<void> | void

/** A log in memory. Each client has its own steps, so that a test can simulate several processes on it. */
export type MemoryLog = {
  readonly events: readonly StoredEvent[]
  /** The position of the newest event; zero if there is none. */
  readonly head: () => bigint
  readonly open: (onStep?: OnStep) => EventStore
}

const APPEND_BYTES_MAX = 1_048_576
/** Positions are byte offsets with gaps, as in EventStoreDB: the first event does not begin at zero. */
const LOG_START = 256n
const FRAME_BYTES = 90

const bytesOf = ({ stream, type, data, metadata }: StoredEvent): bigint =>
  BigInt(FRAME_BYTES + Buffer.byteLength(stream + type + JSON.stringify(data) + JSON.stringify(metadata)))

class AppendTooLarge extends Error {
  readonly type = 'maximum-append-size-exceeded'
}

/** EventStoreDB's error: a computed position is in the middle of an event, and no feed can continue from it. */
class PositionRefused extends Error {
  readonly type = 'unknown'
}

/**
 * The decision about an append by EventStoreDB's rules: `append`, the last event of a resend that was stored before, or
 * undefined for a conflict.
 */
const decide = (stream: readonly StoredEvent[], sent: readonly NewEvent[], expected: ExpectedRevision) => {
  const after = expected === 'no_stream' ? -1 : Number(expected)
  if (after === stream.length - 1) return 'append'
  const there = stream.slice(after + 1, after + 1 + sent.length)
  return there.length === sent.length && there.every(({ id }, n) => id === sent[n]?.id) ? there.at(-1) : undefined
}

export const createMemoryLog = (now: () => number = Date.now): MemoryLog => {
  const log: StoredEvent[] = []
  const streams = new Map<string, StoredEvent[]>()
  let end = LOG_START
  const head = (): bigint => log.at(-1)?.position ?? 0n
  let moved = Promise.withResolvers<void>()

  const record = (name: string, stream: StoredEvent[], sent: readonly NewEvent[]): Appended => {
    for (const event of sent) {
      const place = {
        stream: name,
        revision: BigInt(stream.length),
        position: end,
        storedAt: new Date(now()).toISOString(),
      }
      const stored = { ...structuredClone(event), ...place }
      end += bytesOf(stored)
      log.push(stored)
      stream.push(stored)
    }
    streams.set(name, stream)
    moved.resolve()
    moved = Promise.withResolvers()
    return { ok: true, revision: BigInt(stream.length - 1), position: head() }
  }

  const append = (name: string, sent: readonly NewEvent[], expected: ExpectedRevision): Appended => {
    const stream = streams.get(name) ?? []
    if (JSON.stringify(sent).length > APPEND_BYTES_MAX) throw new AppendTooLarge('An append of more than one mebibyte.')
    const decided = decide(stream, sent, expected)
    if (decided === 'append') return record(name, stream, sent)
    if (decided) return { ok: true, revision: decided.revision, position: decided.position }
    return { ok: false, actual: stream.at(-1)?.revision ?? 'no_stream' }
  }

  async function* subscribe({
    after,
    categories,
    excludeTypes: without,
    signal,
  }: SubscribeOptions): AsyncGenerator<FeedItem> {
    let sentUpTo = after === 'start' ? 0n : after
    let next = log.findLastIndex(({ position }) => position <= sentUpTo) + 1
    if (sentUpTo !== 0n && sentUpTo < end && log[next - 1]?.position !== sentUpTo)
      throw new PositionRefused('UNKNOWN: Exception was thrown by handler.')
    for (let live = false; !signal.aborted; live = true) {
      const stop = new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
      for (; next < log.length && !signal.aborted; next += 1) {
        const event = log[next]
        if (event === undefined || event.position <= sentUpTo || without?.includes(event.type)) continue
        if (categories && !categories.includes(partsOf(event.stream).category)) continue
        sentUpTo = event.position
        yield { kind: 'event', event }
      }
      if (signal.aborted) return
      const position = head()
      if (position > sentUpTo) yield { kind: 'checkpoint', position: (sentUpTo = position) }
      if (!live) yield { kind: 'caught_up' }
      if (next === log.length) await Promise.race([moved.promise, stop])
    }
  }

  return {
    events: log,
    head,
    open: (onStep = () => undefined) => ({
      append: async (stream, sent, expected) => {
        await onStep({ at: 'append', stream })
        const appended = append(stream, sent, expected)
        await onStep({ at: 'appended', stream })
        return appended
      },
      async *readStream(stream, options = {}) {
        await onStep({ at: 'read', stream })
        yield* read(streams.get(stream) ?? [], options)
      },
      subscribe,
      head: () => Promise.resolve(head()),
      close: () => Promise.resolve(),
    }),
  }
}

function* read(
  stream: readonly StoredEvent[],
  { from, direction, limit, signal }: ReadOptions,
): Generator<StoredEvent> {
  const backwards = direction === 'backwards'
  const target = backwards
    ? stream.filter(({ revision }) => from === undefined || revision <= from).toReversed()
    : stream.slice(Number(from ?? 0n))
  for (const event of target.slice(0, limit)) {
    signal?.throwIfAborted()
    yield event
  }
}
