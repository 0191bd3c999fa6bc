/** The ports: interfaces of the dependencies that commands, feeds and processes use. The adapters are in src/adapters. */

import type { Columns, CopyRows } from '../projections/projection.ts'
import type { CrashPoint } from './lib/crashPoints.ts'

export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json }
export type JsonObject = { readonly [key: string]: Json }

// --- The event store -------------------------------------------------------------------------------------------------

/** An event to append. `id` is a UUID; the store uses it to recognise a resend. */
export type NewEvent = {
  readonly id: string
  readonly type: string
  readonly data: JsonObject
  readonly metadata: JsonObject
}

export type StoredEvent = NewEvent & {
  readonly stream: string
  /** Zero for the first event of the stream. */
  readonly revision: bigint
  /** Commit position in the log of all streams. */
  readonly position: bigint
  /** The time at which the store appended it: RFC 3339 in UTC. */
  readonly storedAt: string
  /** The exact content, for readers that ask for it. `createdTicks`: the time of its commit in units of 100 ns since 1970. */
  readonly bytes?: Readonly<{ data: Uint8Array; metadata: Uint8Array; contentType: string; createdTicks: bigint }>
}

/** `no_stream`: the stream must not exist yet. There is no "any": a business event always knows what it follows. */
export type ExpectedRevision = bigint | 'no_stream'

export type Appended =
  | { readonly ok: true /** Those of the last event appended. */; readonly revision: bigint; readonly position: bigint }
  | { readonly ok: false /** The revision of the stream. */; readonly actual: ExpectedRevision }

export type ReadOptions = {
  /** First revision to read, inclusive. Defaults to the first (forwards) or the last (backwards). */
  readonly from?: bigint
  readonly direction?: 'forwards' | 'backwards'
  readonly limit?: number
  /** Delivers the stored bytes of each event too, as far as the store has them. */
  readonly withBytes?: true
  readonly signal?: AbortSignal
}

export type SubscribeOptions = {
  /** Delivers the events after this position; `start` for all events. */
  readonly after: bigint | 'start'
  /** Only streams of these categories (`invoice` for `invoice-inv_…`); all when absent. */
  readonly categories?: readonly string[]
  /** Leaves out the events of these types; the store does not send them. */
  readonly excludeTypes?: readonly string[]
  /** Delivers the stored bytes of each event too, as far as the store has them. */
  readonly withBytes?: true
  readonly signal: AbortSignal
}

/**
 * `checkpoint`: no further matching event up to this position, which is that of an event, so a subscription may begin after
 * it. `caught_up`: from here on the feed is live. `interrupted`: the store does not answer, and is asked again; the feed is not live
 * until the next `caught_up`.
 */
export type FeedItem =
  | { readonly kind: 'event'; readonly event: StoredEvent }
  | { readonly kind: 'checkpoint'; readonly position: bigint }
  | { readonly kind: 'caught_up' }
  | { readonly kind: 'interrupted'; readonly error: unknown }

export type EventStore = {
  /** Appends all events or none. Resending the same ids at the same revision has the result of the first time. */
  append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended>
  /** The events of one stream, in order; none when the stream does not exist. */
  readStream(stream: string, options?: ReadOptions): AsyncIterable<StoredEvent>
  /** Every event once, in order: history, then live, until the signal. Subscribers may share the objects: change none. */
  subscribe(options: SubscribeOptions): AsyncIterable<FeedItem>
  /** The position of the newest event of the whole log, zero when it is empty. */
  head(): Promise<bigint>
  close(): Promise<void>
}

// --- Read models -----------------------------------------------------------------------------------------------------

export type Row = Readonly<Record<string, unknown>>

/** Runs one statement with `$1 …` parameters. */
export type Sql = <R extends Row = Row>(text: string, values?: readonly unknown[]) => Promise<R[]>

export type Snapshot = {
  readonly sql: Sql
  /** The rows of a query in batches of `size`, each fetched when it is requested, so memory holds one batch. */
  readonly batches: <R extends Row = Row>(
    query: { readonly text: string; readonly values: readonly unknown[] },
    size: number,
  ) => AsyncIterable<R[]>
}

export type Database = {
  readonly sql: Sql
  /**
   * Commits all statements of `work`, or none. They are executed in the order of their calls, also when `work` does not wait
   * for one before the next; it must wait for all before it ends. `statementTimeoutMs` replaces their usual time limit.
   */
  transaction<T>(work: (sql: Sql, copy?: CopyRows) => Promise<T>, statementTimeoutMs?: number): Promise<T>
  /** Reads as of the moment of the first statement: later commits are not visible. Writes fail. */
  snapshot<T>(work: (snapshot: Snapshot) => Promise<T>, statementTimeoutMs?: number): Promise<T>
  /**
   * Waits until this process is the only holder of the lease `name`, then runs `work`. `epoch` grows with every new holder: a
   * holder that was replaced while it slept finds a newer epoch and must write nothing. `signal` aborts when the lease
   * is lost or `stop` aborts. `waiting` is called after each attempt that failed: with the error, or with undefined
   * where another process is the holder.
   */
  withLease(
    name: string,
    stop: AbortSignal,
    work: (held: { epoch: bigint; signal: AbortSignal }) => Promise<void>,
    waiting?: (error: unknown) => void,
  ): Promise<void>
  close(): Promise<void>
}

// --- Files of rows ---------------------------------------------------------------------------------------------------

/** Writes one file in pieces, which may be empty. The file is their concatenation. */
export type FileWriter = {
  /** Every row has the members that the columns name; `bigint` and `integer` are numbers, `timestamptz` and `date` RFC 3339. */
  readonly write: (rows: readonly object[]) => Uint8Array
  /** The last piece. No row may be written after it. */
  readonly end: () => Uint8Array
}
export type FileFormat = (columns: Columns) => FileWriter

// --- Published facts -------------------------------------------------------------------------------------------------

export type FactMessage = {
  readonly topic: string
  readonly key: string
  readonly headers: Readonly<Record<string, string>>
  readonly value: string
}

/** How long, and how many bytes of each partition, the topic keeps; the bytes are left as they are when absent. */
type TopicRetention = { readonly retentionMs: number; readonly retentionBytes?: number }
export type TopicSettings = TopicRetention & { readonly topic: string; readonly partitions: number }

export type FactProducer = {
  /** Creates missing topics and corrects retentions; throws for another number of partitions. */
  ensureTopics(topics: readonly TopicSettings[]): Promise<void>
  /** Resolves when all replicas have every message, in order per key. Throws FactTooLarge when no retry can help. */
  publish(messages: readonly FactMessage[]): Promise<void>
  close(): Promise<void>
}

/** The topics that a principal may read, and the prefix of its consumer groups. */
export type ReadingRights = { readonly topics: readonly string[]; readonly groupPrefix: string }

/** Publishes facts, and manages the topics of subscriptions and their permitted readers. */
export type FactBus = FactProducer & {
  /** Ignores topics that do not exist. */
  deleteTopics(topics: readonly string[]): Promise<void>
  /** `not_enforced`: the broker has no authorizer, so every client may read every topic. */
  grantReading(principal: string, rights: ReadingRights): Promise<'granted' | 'not_enforced'>
  /** Revokes the rights of all principals on these topics and groups. */
  revokeReading(rights: ReadingRights): Promise<void>
}

/** The fact is larger than the broker accepts, so no retry helps. `key` is the key to park. */
export class FactTooLarge extends Error {
  readonly key: string
  readonly topic: string

  constructor(message: FactMessage, cause?: unknown) {
    super(`The fact with key ${message.key} is larger than topic ${message.topic} takes.`, { cause })
    this.name = 'FactTooLarge'
    this.key = message.key
    this.topic = message.topic
  }
}

/** Login or operation denied: a retry helps only after a change of a setting. No fact is the cause, so none is parked. */
export class BrokerAccessDenied extends Error {
  constructor(sentence: string, cause: unknown) {
    super(sentence, { cause })
    this.name = 'BrokerAccessDenied'
  }
}

// --- Rates -----------------------------------------------------------------------------------------------------------

export type RateLimit = { readonly requests: number; readonly windowSeconds: number }

/** The requests of a key in its window, this one included, and the time until the next window. */
export type Counted = { readonly used: number; readonly resetMs: number }

/** Windows begin with the first request of a key. Never rejects. Requests over the limit need not be counted. */
export type RateCounter = { readonly count: (key: string, limit: RateLimit) => Promise<Counted> }

// --- Unavailable dependencies ----------------------------------------------------------------------------------------

/** A dependency did not answer. `effect`: `none` if the operation cannot have been done, else `unknown`. */
export class Unavailable extends Error {
  readonly dependency: 'event store' | 'database' | 'fact bus'
  readonly effect: 'none' | 'unknown'

  constructor(
    dependency: Unavailable['dependency'],
    { effect, cause }: { readonly effect: Unavailable['effect']; readonly cause?: unknown },
  ) {
    super(`The ${dependency} did not answer; effect: ${effect}.`, { cause })
    this.name = 'Unavailable'
    this.dependency = dependency
    this.effect = effect
  }
}

/** The result of the work; undefined if a dependency did not answer. */
export const unlessUnavailable = <T>(work: Promise<T>): Promise<T | undefined> =>
  work.catch((error: unknown) => {
    if (!(error instanceof Unavailable)) throw error
    return undefined
  })

// --- The world: clock, sleep, randomness and crash points, which a simulation replaces ---------------------------------

export type World = {
  /** Milliseconds since the epoch, by a clock that may be set: for times that are recorded or compared with dates. */
  now(): number
  /** Milliseconds from an arbitrary origin, which never jump: for deadlines, leases, pauses and grace periods. */
  monotonicMs(): number
  randomBytes(count: number): Uint8Array
  /** Resolves after the time, or at once when the signal aborts. */
  sleep(timeMs: number, signal?: AbortSignal): Promise<void>
  /** A test may kill the process at this step. Does nothing in production. */
  crashPoint(name: CrashPoint): void
}

// --- The log of the service -----------------------------------------------------------------------------------------------

type LoggerLine = (fields: object, message: string) => void
export type Logger = { readonly info: LoggerLine; readonly warn: LoggerLine; readonly error: LoggerLine }
