import featuresGrpc from '@eventstore/db-client/generated/serverfeatures_grpc_pb.js'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'
import { Metadata, Server, ServerCredentials, type ServiceError, type status as Status } from '@grpc/grpc-js'
import { findFreePort } from '../../src/embedded/freePorts.ts'

/** An event store on a real connection that answers every call with one status. */
export type RefusingStore = {
  readonly port: number
  readonly calls: () => number
  readonly stop: () => Promise<void>
}

export type Refusing = {
  readonly code: (typeof Status)[keyof typeof Status]
  readonly details: string
  readonly credentials?: ServerCredentials
  readonly port?: number
}

export const startRefusingStore = async (refusing: Refusing): Promise<RefusingStore> => {
  const { code, details, credentials = ServerCredentials.createInsecure() } = refusing
  // Another store takes the port over, so it must not be one of outgoing connections.
  const port = refusing.port ?? (await findFreePort('127.0.0.1'))
  const server = new Server()
  let calls = 0
  const failure = (): ServiceError => {
    calls += 1
    return Object.assign(new Error(details), { code, details, metadata: new Metadata() })
  }
  const unary = (_: unknown, answer: (error: ServiceError) => void): void => answer(failure())
  const stream = (call: { emit: (name: 'error', error: Error) => boolean }): void => void call.emit('error', failure())
  const { read, append, batchAppend, delete: remove, tombstone } = streamsGrpc.StreamsService
  server.addService(
    { read, append, batchAppend, delete: remove, tombstone },
    { read: stream, batchAppend: stream, append: unary, delete: unary, tombstone: unary },
  )
  server.addService(featuresGrpc.ServerFeaturesService, { getSupportedMethods: unary })
  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`127.0.0.1:${port}`, credentials, (error, at) => (error ? reject(error) : resolve(at)))
  })
  return {
    port: bound,
    calls: () => calls,
    stop: async () => server.forceShutdown(),
  }
}
