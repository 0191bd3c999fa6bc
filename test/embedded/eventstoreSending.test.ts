import { randomUUID } from 'node:crypto'
import { type ClientReadableStream, Server, ServerCredentials, type ServiceError, credentials } from '@grpc/grpc-js'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import type { ReadResp } from '@eventstore/db-client/generated/streams_pb.js'
import { expect } from 'chai'
import {
  type BackpressureWriter,
  type ReadCall,
  openBackpressureWriter,
} from '../../src/embedded/eventstore/protocol/backpressureWriter.ts'
import { confirmationMessage } from '../../src/embedded/eventstore/protocol/messages.ts'
import { streamDeleted } from '../../src/embedded/eventstore/protocol/status.ts'
import { eventually, standstill } from '../support/eventually.ts'

const MESSAGE_BYTES = 64 * 1024

describe('embedded event store: the sending of messages', () => {
  let serve: (writer: BackpressureWriter) => void
  let server: Server
  let client: InstanceType<typeof streamsGrpc.StreamsClient>

  beforeEach(async () => {
    server = new Server()
    const { read } = streamsGrpc.StreamsService
    server.addService({ read }, { read: (call: ReadCall) => serve(openBackpressureWriter(call)) })
    const port = await new Promise<number>((resolve, reject) =>
      server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      ),
    )
    client = new streamsGrpc.StreamsClient(`127.0.0.1:${port}`, credentials.createInsecure())
  })
  afterEach(() => {
    client.close()
    server.forceShutdown()
  })

  const received = async (call: ClientReadableStream<ReadResp>) => {
    const texts: (string | undefined)[] = []
    let failure: ServiceError | undefined
    call.on('data', (message: ReadResp) => texts.push(message.getConfirmation()?.getSubscriptionId()))
    await new Promise<void>(resolve => {
      call.on('end', resolve).on('error', (error: ServiceError) => {
        failure = error
        resolve()
      })
    })
    return { texts, failure }
  }

  it('keeps their order', async () => {
    const texts = Array.from({ length: 2_000 }, () => randomUUID())
    serve = async writer => {
      for (const text of texts) await writer.send(confirmationMessage(text))
      writer.end(undefined)
    }
    expect(await received(client.read(new streams.ReadReq()))).to.deep.equal({ texts, failure: undefined })
  })

  it('sends them before a failure', async () => {
    serve = async writer => {
      await writer.send(confirmationMessage('last'))
      writer.end(streamDeleted('s-1'))
    }
    const { texts, failure } = await received(client.read(new streams.ReadReq()))
    expect(texts).to.deep.equal(['last'])
    expect(failure).to.include({ details: "Event stream 's-1' is deleted." })
  })

  it('waits for a reader that does not read, and not for one that has left', async () => {
    let sent = 0
    let hasEnded = false
    serve = async writer => {
      while (!writer.gone.aborted) {
        await writer.send(confirmationMessage('x'.repeat(MESSAGE_BYTES)))
        sent += 1
      }
      hasEnded = true
    }
    const call = client.read(new streams.ReadReq())
    // A call of this library that was never read buffers messages without bound: read first, then pause.
    call.on('error', () => undefined).on('data', () => undefined)
    await eventually(() => sent > 0)
    call.pause()
    // How much fits into the buffers of both kernels differs by machine: the writer has to stop, wherever that is.
    const ahead = await standstill(() => sent)
    call.resume()
    await eventually(() => sent > 2 * ahead)
    call.pause()
    await standstill(() => sent)
    call.cancel()
    await eventually(() => hasEnded)
  })
})
