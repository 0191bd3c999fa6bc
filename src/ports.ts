/** What the inside needs of the outside, in its own words. One adapter each under src/adapters. */

import type { Columns } from '../projections/projection.ts'

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
  /** When the store took it: RFC 3339 in UTC. */
  readonly storedAt: string
}

/** `no_stream`: the stream must not exist yet. There is no "any": a business event always knows what it follows. */
export type ExpectedRevision = bigint | 'no_stream'

export type Appended =
  | { readonly ok: true /** Of the last event appended. */; readonly revision: bigint; readonly position: bigint }
  | { readonly ok: false /** What the stream is at instead. */; readonly actual: ExpectedRevision }

export type ReadOptions = {
  /** First revision to read, inclusive. Defaults to the first (forwards) or the last (backwards). */
  readonly from?: bigint
  readonly direction?: 'forwards' | 'backwards'
  readonly limit?: number
  readonly signal?: AbortSignal
}

export type SubscribeOptions = {
  /** Deliver what comes after this position; `start` for everything. */
  readonly after: bigint | 'start'
  /** Only streams of these categories (`invoice` for `invoice-inv_…`); all when absent. */
  readonly categories?: readonly string[]
  /** Leaves out the events of these types. What is left out is not even sent. */
  readonly excludeTypes?: readonly string[]
  readonly signal: AbortSignal
}

/**
 * `checkpoint`: nothing of interest up to this position. `caught_up`: from here on the feed is live. `interrupted`: the
 * store does not answer, and is asked again; the feed is not live until the next `caught_up`.
 */
export type FeedItem =
  | { readonly kind: 'event'; readonly event: StoredEvent }
  | { readonly kind: 'checkpoint'; readonly position: bigint }
  | { readonly kind: 'caught_up' }
  | { readonly kind: 'interrupted'; readonly error: unknown }

export type EventStore = {
  /** Appends all events or none. Resending the same ids at the same revision answers as the first time did. */
  append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended>
  /** The events of one stream, in order; none when the stream does not exist. */
  readStream(stream: string, options?: ReadOptions): AsyncIterable<StoredEvent>
  /** Every event of the given categories, once, in the order of the log: history first, then live, until the signal. */
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
  /** The rows of a query, `size` at a time, each batch fetched when it is asked for: any number of rows in little memory. */
  readonly batches: <R extends Row = Row>(
    query: { readonly text: string; readonly values: readonly unknown[] },
    size: number,
  ) => AsyncIterable<R[]>
}

export type Database = {
  readonly sql: Sql
  /** Everything that `work` does, or nothing of it. */
  transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T>
  /**
   * Reads as of one moment, for as long as the work takes: nothing that others commit meanwhile is seen. Writes fail.
   */
  snapshot<T>(work: (snapshot: Snapshot) => Promise<T>): Promise<T>
  /**
   * Waits until this process is the only holder of `name`, then runs `work`. `epoch` grows with every new holder: a
   * holder that was replaced while it slept finds a newer epoch and must write nothing. `signal` aborts when the lock
   * is lost or `stop` aborts.
   */
  exclusively(
    name: string,
    stop: AbortSignal,
    work: (held: { epoch: bigint; signal: AbortSignal }) => Promise<void>,
  ): Promise<void>
  close(): Promise<void>
}

// --- Files of rows ---------------------------------------------------------------------------------------------------

/** Writes one file, piece by piece; a piece may be empty. The pieces in their order are the file. */
export type FileWriter = {
  /** Every row has the members that the columns name; `bigint` and `integer` are numbers, `timestamptz` and `date` RFC 3339. */
  readonly write: (rows: readonly object[]) => Uint8Array
  /** What stands at the end. Nothing may be written after it. */
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

export type TopicSettings = { readonly topic: string; readonly partitions: number; readonly retentionMs: number }

export type FactBus = {
  /** Creates what is missing and lengthens a retention that is shorter; throws when a topic has other partitions. */
  ensureTopics(topics: readonly TopicSettings[]): Promise<void>
  /**
   * Resolves when every message is acknowledged by all replicas; order per key is the order given. Throws FactTooLarge
   * when no retry can help.
   */
  publish(messages: readonly FactMessage[]): Promise<void>
  close(): Promise<void>
}

/** Who may read which topics, in which groups; no one else is told so. */
export type ReadingRights = { readonly topics: readonly string[]; readonly groupPrefix: string }

/** A fact bus with topics that come and go, and belong to somebody. */
export type SubscriberBus = FactBus & {
  /** What is not there is deleted already. */
  deleteTopics(topics: readonly string[]): Promise<void>
  /** `not_enforced`: the broker lets everybody read everything, so that there is nothing to grant. */
  grantReading(principal: string, rights: ReadingRights): Promise<'granted' | 'not_enforced'>
  /** Takes away whatever anybody was granted on these topics and groups. */
  revokeReading(rights: ReadingRights): Promise<void>
}

/** A fact that no retry can deliver: it is larger than the broker takes. Its key says which one to park. */
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

// --- Rates -----------------------------------------------------------------------------------------------------------

export const RATE_POLICIES = ['default', 'payments', 'exports', 'auth_failures', 'api_keys'] as const
export type RatePolicy = (typeof RATE_POLICIES)[number]

export type RateLimit = { readonly requests: number; readonly windowSeconds: number }

/** What a key has had in its window, this request included, and when the next window begins. */
export type Counted = { readonly used: number; readonly resetMs: number }

/**
 * Counts requests in windows that begin with the first request of a key. Never rejects. Of a key that has had more than
 * its limit it need not go on counting.
 */
export type RateCounter = { readonly count: (key: string, limit: RateLimit) => Promise<Counted> }

// --- What can go wrong with any of them ------------------------------------------------------------------------------

/**
 * The machinery behind a port did not answer. `effect` says what the caller may promise: `none` when nothing was or
 * could have been done, `unknown` when it may have been done all the same.
 */
export class Unavailable extends Error {
  readonly part: 'event store' | 'database' | 'fact bus'
  readonly effect: 'none' | 'unknown'

  constructor(part: Unavailable['part'], effect: Unavailable['effect'], cause: unknown) {
    super(`The ${part} did not answer; effect: ${effect}.`, { cause })
    this.name = 'Unavailable'
    this.part = part
    this.effect = effect
  }
}

// --- The world: what makes two runs differ, so that a simulation can decide it ------------------------------------------

export type World = {
  /** Milliseconds since the epoch, by a clock that an administrator may set: for what is recorded and compared with dates. */
  now(): number
  /** Milliseconds from a moment of its own, never set and never going back: for deadlines, leases, pauses and grace periods. */
  monotonicMs(): number
  randomBytes(count: number): Uint8Array
  /** Resolves after the time, or at once when the signal aborts. */
  sleep(timeMs: number, signal?: AbortSignal): Promise<void>
  /** A place where a test may end the process. Does nothing in production. */
  crashPoint(name: CrashPoint): void
}

/** The steps of a payment between which a crash is interesting. */
export const CRASH_POINTS = [
  'before_claim',
  'after_claim',
  'after_reference',
  'after_reservation',
  'after_outcome',
  'mid_response',
] as const
export type CrashPoint = (typeof CRASH_POINTS)[number]

// --- Telling the operator -------------------------------------------------------------------------------------------------

type LogLine = (fields: object, message: string) => void
export type Log = { readonly info: LogLine; readonly warn: LogLine; readonly error: LogLine }
