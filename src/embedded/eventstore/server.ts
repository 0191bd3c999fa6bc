import { Server, ServerCredentials } from '@grpc/grpc-js'
import featuresGrpc from '@eventstore/db-client/generated/serverfeatures_grpc_pb.js'
import gossipGrpc from '@eventstore/db-client/generated/gossip_grpc_pb.js'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'
import { StartupError } from '../../lib/startupError.ts'
import { findFreePort } from '../freePorts.ts'
import { append } from './protocol/append.ts'
import { BATCH_APPEND, batchAppend } from './protocol/batchAppend.ts'
import { serveBatchAppend } from './protocol/batchStream.ts'
import { gossipRead, supportedMethods } from './protocol/cluster.ts'
import { writesBatches } from './protocol/backpressureWriter.ts'
import { read } from './protocol/read.ts'
import { serveReadStream } from './protocol/readStream.ts'
import { deleteStream, tombstone } from './protocol/delete.ts'
import { type Interception, interceptStreams } from './protocol/streamInterception.ts'
import type { Log } from './read.ts'
import { openReader } from './storage.ts'
import { type Writer, openWriter } from './writer.ts'

/** The gRPC server of the embedded event store. */

const HOST = '127.0.0.1'
const MESSAGE_BYTES_MAX = 17 * 1024 * 1024
const DRAIN_MS = 1000
const BIND_ATTEMPTS_MAX = 20

export type EventStoreNode = {
  /** `esdb://127.0.0.1:PORT?tls=false` */
  readonly address: string
  readonly port: number
  close(): Promise<void>
}

export type NodeOptions = {
  readonly databaseUrl: string
  /** 0 for a free one. */
  readonly port: number
  /** The node lost its database to another node and must end. */
  readonly onReplaced?: (error: Error) => void
}

/** The service with an encoding of its own. Read responses are encoded before they reach the call. */
const STREAMS_SERVICE = {
  ...streamsGrpc.StreamsService,
  read: {
    ...streamsGrpc.StreamsService.read,
    responseSerialize: (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
  },
  batchAppend: BATCH_APPEND,
}

/**
 * A single-node EventStoreDB: serves its gRPC protocol on the loopback interface and keeps its log in Postgres. Throws
 * if Postgres or the port is not available, and NodeAlreadyRunning if another node uses the database.
 */
export const openEventStoreNode = async ({ databaseUrl, port, onReplaced }: NodeOptions): Promise<EventStoreNode> => {
  const writer = await openWriter({ connectionString: databaseUrl, onReplaced: error => onReplaced?.(error) })
  const reader = openReader(databaseUrl)
  const server = new Server({
    'grpc.max_receive_message_length': MESSAGE_BYTES_MAX,
    'grpc.max_send_message_length': MESSAGE_BYTES_MAX,
    interceptors: [writesBatches(streamsGrpc.StreamsService.read.path)],
  })
  const { tail, streams } = writer
  const log = { reader, streams, tail }
  let boundPort = port
  server.addService(STREAMS_SERVICE, {
    read: read(log),
    append: append(writer),
    batchAppend: batchAppend(writer),
    delete: deleteStream(writer),
    tombstone: tombstone(writer),
  })
  server.addService(gossipGrpc.GossipService, { read: gossipRead(HOST, () => boundPort) })
  server.addService(featuresGrpc.ServerFeaturesService, { getSupportedMethods: supportedMethods })
  let stopIntercepting = (): void => undefined
  const close = async (): Promise<void> => {
    await shutDown(server)
    stopIntercepting()
    await writer.close()
    await reader.end()
  }
  try {
    boundPort = await listen(server, port)
  } catch (error) {
    await close()
    throw error
  }
  stopIntercepting = interceptStreams({
    port: boundPort,
    methods: directMethods(log, writer),
  })
  return { address: `esdb://${HOST}:${boundPort}?tls=false`, port: boundPort, close }
}

/** The methods that are served without the gRPC library. */
const directMethods = (log: Log, writer: Writer): Interception['methods'] =>
  new Map([
    [streamsGrpc.StreamsService.batchAppend.path, serveBatchAppend(writer, MESSAGE_BYTES_MAX)],
    [streamsGrpc.StreamsService.read.path, serveReadStream(log, MESSAGE_BYTES_MAX)],
  ])

/** A port that was found free may be taken before it is bound, so that others are tried. */
const listen = async (server: Server, port: number): Promise<number> => {
  if (port !== 0) return bind(server, port)
  for (let attempt = 1; ; attempt += 1) {
    const chosen = await findFreePort(HOST)
    try {
      return await bind(server, chosen)
    } catch (error) {
      if (attempt === BIND_ATTEMPTS_MAX) throw error
    }
  }
}

const bind = (server: Server, port: number): Promise<number> =>
  new Promise((resolve, reject) => {
    server.bindAsync(`${HOST}:${port}`, ServerCredentials.createInsecure(), (error, bound) => {
      if (error === null) resolve(bound)
      else reject(new StartupError(`Cannot listen on ${HOST}:${port}. Is the port in use?`, error))
    })
  })

/** Appends in flight get a grace for their responses; subscriptions never end by themselves. */
const shutDown = (server: Server): Promise<void> =>
  new Promise(resolve => {
    const force = setTimeout(() => {
      server.forceShutdown()
      resolve()
    }, DRAIN_MS)
    server.tryShutdown(() => {
      clearTimeout(force)
      resolve()
    })
  })
