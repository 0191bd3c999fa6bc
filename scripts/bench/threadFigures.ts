import { subscribe } from 'node:diagnostics_channel'
import type { ClientHttp2Stream, OutgoingHttpHeaders } from 'node:http2'
import {
  constants,
  monitorEventLoopDelay,
  type PerformanceEntry,
  PerformanceObserver,
  performance,
} from 'node:perf_hooks'
import pg from 'pg'
import { LENGTH_AT, PREFIX_BYTES } from '../../src/grpc/framing.ts'

/** Counts in one thread of the service: its event loop, its garbage collections, its statements, its gRPC calls. */

/** One method of gRPC, as its client sees it. */
export type CallFigures = {
  calls: number
  messagesSent: number
  /** Writes to an HTTP/2 stream. Each is a DATA frame, or several if it is longer than 16 KiB. */
  writes: number
  bytesSent: number
  messagesReceived: number
  /** Payloads of DATA frames, as Node gives them. A frame that comes in two reads is counted twice. */
  chunksReceived: number
  bytesReceived: number
}

export type ThreadFigures = {
  /** The share of the time in which the event loop was not idle. */
  readonly utilization: number
  /** How much later than planned a timer of 10 ms was called. */
  readonly delayMs: { readonly p50: number; readonly p99: number; readonly max: number }
  /** By kind. */
  readonly collections: Readonly<Record<string, { readonly count: number; readonly ms: number }>>
  /** Calls by the text of the statement. */
  readonly statements: Readonly<Record<string, number>>
  /** By the path of the method. */
  readonly calls: Readonly<Record<string, Readonly<CallFigures>>>
}

const DELAY_RESOLUTION_MS = 10
const NS_PER_MS = 1e6
const KINDS: Readonly<Record<number, string>> = {
  [constants.NODE_PERFORMANCE_GC_MINOR]: 'minor',
  [constants.NODE_PERFORMANCE_GC_MINOR_MARK_SWEEP]: 'minor',
  [constants.NODE_PERFORMANCE_GC_MAJOR]: 'major',
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: 'incremental',
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: 'weak',
}

/** Counts the messages that end in each chunk of one direction of a gRPC call, however they are divided into chunks. */
export const messageCounter = (): ((chunk: Uint8Array) => number) => {
  const prefix = Buffer.alloc(PREFIX_BYTES)
  let prefixBytes = 0
  let left = 0
  return chunk => {
    let ended = 0
    for (let at = 0; at < chunk.length; ) {
      if (prefixBytes < PREFIX_BYTES) {
        prefix[prefixBytes++] = chunk[at++] ?? 0
        if (prefixBytes < PREFIX_BYTES) continue
        left = prefix.readUInt32BE(LENGTH_AT)
      }
      const taken = Math.min(left, chunk.length - at)
      at += taken
      left -= taken
      if (left > 0) continue
      ended += 1
      prefixBytes = 0
    }
    return ended
  }
}

/** Counts what passes through this stream, in both directions. `figures` is asked each time, since it changes by phase. */
const countStream = (stream: ClientHttp2Stream, figures: () => CallFigures): void => {
  const write = stream._write.bind(stream)
  const writev = stream._writev?.bind(stream)
  const push = stream.push.bind(stream)
  const [sent, received] = [messageCounter(), messageCounter()]
  const countSent = (chunks: readonly Uint8Array[]): void => {
    const now = figures()
    now.writes += 1
    for (const chunk of chunks) {
      now.messagesSent += sent(chunk)
      now.bytesSent += chunk.length
    }
  }
  stream._write = (chunk: Uint8Array, ...rest) => {
    countSent([chunk])
    write(chunk, ...rest)
  }
  stream._writev = (chunks, ...rest) => {
    countSent(chunks.map(({ chunk }: { readonly chunk: Uint8Array }) => chunk))
    writev?.(chunks, ...rest)
  }
  stream.push = (chunk: unknown, ...rest) => {
    if (chunk instanceof Uint8Array) {
      const now = figures()
      now.messagesReceived += received(chunk)
      now.chunksReceived += 1
      now.bytesReceived += chunk.length
    }
    return push(chunk, ...rest)
  }
}

const noCalls = (): CallFigures => ({
  calls: 0,
  messagesSent: 0,
  writes: 0,
  bytesSent: 0,
  messagesReceived: 0,
  chunksReceived: 0,
  bytesReceived: 0,
})

type Opened = { readonly stream: ClientHttp2Stream; readonly headers: OutgoingHttpHeaders }

const countCalls = (): Map<string, CallFigures> => {
  const calls = new Map<string, CallFigures>()
  subscribe('http2.client.stream.created', message => {
    const { stream, headers } = message as Opened
    const path = String(headers[':path'])
    const figures = (): CallFigures => calls.get(path) ?? calls.set(path, noCalls()).get(path) ?? noCalls()
    figures().calls += 1
    countStream(stream, figures)
  })
  return calls
}

/** A query class of the program's own ("Submittable") may have no text. */
const textOf = (query: unknown): string => {
  if (typeof query === 'string') return query
  const { text, constructor } = query as { readonly text?: unknown; readonly constructor: { readonly name: string } }
  return typeof text === 'string' ? text : constructor.name
}

const countStatements = (): Map<string, number> => {
  const statements = new Map<string, number>()
  const prototype: { query: (...args: never[]) => unknown } = pg.Client.prototype
  const { query } = prototype
  prototype.query = function (this: unknown, ...args: unknown[]): unknown {
    const text = textOf(args[0])
    statements.set(text, (statements.get(text) ?? 0) + 1)
    return Reflect.apply(query, this, args)
  }
  return statements
}

type Collection = PerformanceEntry & { readonly detail: { readonly kind: number } }

const collectionsOf = (entries: readonly Collection[]): ThreadFigures['collections'] => {
  const kindOf = ({ detail }: Collection): string => KINDS[detail.kind] ?? 'other'
  const byKind = [...Map.groupBy(entries, kindOf)]
  return Object.fromEntries(
    byKind.map(([kind, all]) => [kind, { count: all.length, ms: all.reduce((sum, each) => sum + each.duration, 0) }]),
  )
}

export type ThreadCounter = {
  readonly start: () => void
  /** The counts since `start`. */
  readonly stop: () => ThreadFigures
}

/** Counts from now on; connections and calls that were opened earlier are not seen, hence called before the program. */
export const countThread = (): ThreadCounter => {
  const [calls, statements] = [countCalls(), countStatements()]
  const collections: Collection[] = []
  const observer = new PerformanceObserver(list => void collections.push(...(list.getEntries() as Collection[])))
  const delay = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS })
  const delayMs = (ns: number): number => Math.max(0, ns / NS_PER_MS - DELAY_RESOLUTION_MS)
  let loop = performance.eventLoopUtilization()
  return {
    start: () => {
      calls.clear()
      statements.clear()
      collections.length = 0
      observer.observe({ entryTypes: ['gc'] })
      delay.reset()
      delay.enable()
      loop = performance.eventLoopUtilization()
    },
    stop: () => {
      const { utilization } = performance.eventLoopUtilization(loop)
      delay.disable()
      collections.push(...(observer.takeRecords() as Collection[]))
      observer.disconnect()
      return {
        utilization,
        delayMs: { p50: delayMs(delay.percentile(50)), p99: delayMs(delay.percentile(99)), max: delayMs(delay.max) },
        collections: collectionsOf(collections),
        statements: Object.fromEntries(statements),
        calls: Object.fromEntries(calls),
      }
    },
  }
}
