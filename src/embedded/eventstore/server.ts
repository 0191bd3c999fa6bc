import { Server, ServerCredentials } from '@grpc/grpc-js'
import featuresGrpc from '@eventstore/db-client/generated/serverfeatures_grpc_pb.js'
import gossipGrpc from '@eventstore/db-client/generated/gossip_grpc_pb.js'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'
import { StartupError } from '../../lib/startupError.ts'
import { findFreePort } from '../freePorts.ts'
import { append } from './protocol/append.ts'
import { batchAppend } from './protocol/batchAppend.ts'
import { BATCH_APPEND } from './protocol/batchRequest.ts'
import { gossipRead, supportedMethods } from './protocol/cluster.ts'
import { groupMessages } from './protocol/groupedMessages.ts'
import { read } from './protocol/read.ts'
import { deleteStream, tombstone } from './protocol/delete.ts'
import { openReader } from './storage.ts'
import { openWriter } from './writer.ts'

const HOST = '127.0.0.1'
const MESSAGE_BYTES_MAX = 17 * 1024 * 1024
const DRAIN_MS = 1000
const BIND_ATTEMPTS_MAX = 20

export type EventStoreNode = {
  /** `esdb://127.0.0.1:PORT?tls=false` */
  readonly address: string
  readonly port: number
  readonly close: () => Promise<void>
}

export type NodeOptions = {
  readonly databaseUrl: string
  /** 0 for a free one. */
  readonly port: number
  /** The node lost its database to another node and must end. */
  readonly onReplaced?: (error: Error) => void
}

/** A single-node EventStoreDB over loopback, whose log is in Postgres. Throws if that or the port is not available. */
export const openEventStoreNode = async ({ databaseUrl, port, onReplaced }: NodeOptions): Promise<EventStoreNode> => {
  const writer = await openWriter({ connectionString: databaseUrl, onReplaced: error => onReplaced?.(error) })
  const reader = openReader(databaseUrl)
  const server = new Server({
    'grpc.max_receive_message_length': MESSAGE_BYTES_MAX,
    'grpc.max_send_message_length': MESSAGE_BYTES_MAX,
    interceptors: [groupMessages],
  })
  const { tail, streams } = writer
  let boundPort = port
  const streamsService = { ...streamsGrpc.StreamsService, batchAppend: BATCH_APPEND }
  server.addService(streamsService, {
    read: read({ reader, streams, tail }),
    append: append(writer),
    batchAppend: batchAppend(writer),
    delete: deleteStream(writer),
    tombstone: tombstone(writer),
  })
  server.addService(gossipGrpc.GossipService, { read: gossipRead(HOST, () => boundPort) })
  server.addService(featuresGrpc.ServerFeaturesService, { getSupportedMethods: supportedMethods })
  const close = async (): Promise<void> => {
    await shutDown(server)
    await writer.close()
    await reader.end()
  }
  try {
    boundPort = await listen(server, port)
  } catch (error) {
    await close()
    throw error
  }
  return { address: `esdb://${HOST}:${boundPort}?tls=false`, port: boundPort, close }
}

/** A port that was found free may be taken before it is bound, so others are tried. */
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
