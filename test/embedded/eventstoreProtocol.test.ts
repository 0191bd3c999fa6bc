/** Features of the protocol that the Node client does not use or hides from its callers, and other clients depend on. */

import { randomUUID } from 'node:crypto'
import { type ServiceError, credentials, status } from '@grpc/grpc-js'
import { BinaryWriter } from 'google-protobuf'
import duration from 'google-protobuf/google/protobuf/duration_pb.js'
import empty from 'google-protobuf/google/protobuf/empty_pb.js'
import shared from '@eventstore/db-client/generated/shared_pb.js'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import type { AppendResp, BatchAppendResp, ReadReq, ReadResp } from '@eventstore/db-client/generated/streams_pb.js'
import { expect } from 'chai'
import { identifierOf, streamName, uuidMessage } from '../../src/embedded/eventstore/protocol/messages.ts'
import { type Raw, newStream, startRaw } from './rawEventStoreClient.ts'

type Batch = InstanceType<typeof streams.BatchAppendReq>
type BatchOptions = InstanceType<typeof streams.BatchAppendReq.Options>

const OVERSIZED_EVENTS = 3
const EVENT_BYTES = 500_000
const JSON_CONTENT = 'application/json'
const MAX_COUNT = '18446744073709551615'

const batchOf = (options: BatchOptions | undefined, events: number, bytes = 2): Batch => {
  const message = new streams.BatchAppendReq().setCorrelationId(uuidMessage(randomUUID(), 'structured'))
  if (options !== undefined) message.setOptions(options)
  for (let n = 0; n < events; n += 1) {
    const event = new streams.BatchAppendReq.ProposedMessage().setId(uuidMessage(randomUUID(), 'string'))
    event.getMetadataMap().set('type', 'Made').set('content-type', JSON_CONTENT)
    message.addProposedMessages(event.setData(Buffer.alloc(bytes, 0x20)))
  }
  return message
}

const anyRevision = (stream: string): BatchOptions =>
  new streams.BatchAppendReq.Options().setStreamIdentifier(identifierOf(stream)).setAny(new empty.Empty())

/** The encoded message with the deadline of newer clients, a duration, which the generated classes do not have. */
const withDuration = (message: Batch, seconds: number): Buffer => {
  const options = new BinaryWriter()
  const deadline = new duration.Duration().setSeconds(seconds)
  options.writeBytes(7, deadline.serializeBinary())
  const encoded = Buffer.concat([message.getOptions()?.serializeBinary() ?? Buffer.alloc(0), options.getResultBuffer()])
  const rest = new BinaryWriter()
  rest.writeBytes(2, encoded)
  message.clearOptions()
  return Buffer.concat([message.serializeBinary(), rest.getResultBuffer()])
}

const asSent = (message: Batch | Buffer): Buffer =>
  Buffer.isBuffer(message) ? message : Buffer.from(message.serializeBinary())

describe('embedded event store: the protocol of clients in other languages', () => {
  let raw: Raw
  let client: InstanceType<typeof streamsGrpc.StreamsClient>

  before(async () => {
    raw = await startRaw()
    client = new streamsGrpc.StreamsClient(new URL(raw.node.address).host, credentials.createInsecure())
  })
  after(async () => {
    client.close()
    await raw.stop()
  })

  /** The first responses to the messages of one BatchAppend call, which stays open meanwhile. */
  const batch = (messages: readonly (Batch | Buffer)[], answers: number): Promise<BatchAppendResp[]> => {
    const { path, responseDeserialize } = streamsGrpc.StreamsService.batchAppend
    const call = client.makeBidiStreamRequest(path, asSent, responseDeserialize)
    return new Promise((resolve, reject) => {
      const received: BatchAppendResp[] = []
      call.on('error', reject)
      call.on('data', (response: BatchAppendResp) => {
        if (received.push(response) < answers) return
        call.removeListener('error', reject).on('error', () => undefined)
        call.cancel()
        resolve(received)
      })
      for (const message of messages) call.write(message)
    })
  }
  const only = async (...messages: (Batch | Buffer)[]): Promise<BatchAppendResp> => {
    const [response] = await batch(messages, 1)
    if (response === undefined) throw new Error('There is no response.')
    return response
  }

  type Answer = { readonly response: AppendResp } | { readonly failed: ServiceError }
  type Metadata = Readonly<Record<string, string>>

  /** Sends one event after the other, and does not end its side of the call. */
  const append = (stream: string, events: number, bytes: number, metadata: Metadata): Promise<Answer> =>
    new Promise(resolve => {
      const call = client.append((failed, response) => resolve(failed ? { failed } : { response }))
      const options = new streams.AppendReq.Options().setStreamIdentifier(identifierOf(stream))
      call.write(new streams.AppendReq().setOptions(options.setAny(new shared.Empty())))
      for (let n = 0; n < events; n += 1) {
        const event = new streams.AppendReq.ProposedMessage().setId(uuidMessage(randomUUID(), 'string'))
        for (const [key, value] of Object.entries(metadata)) event.getMetadataMap().set(key, value)
        call.write(new streams.AppendReq().setProposedMessage(event.setData(Buffer.alloc(bytes, 0x20))))
      }
    })

  const failureOf = (answer: Answer): ServiceError => {
    if ('response' in answer) throw new Error('The append was not refused.')
    return answer.failed
  }

  describe('BatchAppend', () => {
    it('reports errors with the codes and messages of the real server', async () => {
      const closed = newStream()
      await raw.client.tombstoneStream(closed)
      const missing = anyRevision(newStream()).setStreamPosition('3')
      const cases = [
        [missing, 1, 2, status.ALREADY_EXISTS, 'WrongExpectedVersion'],
        [anyRevision(closed), 1, 2, status.NOT_FOUND, 'StreamDeleted'],
        [anyRevision(newStream()), OVERSIZED_EVENTS, EVENT_BYTES, status.INVALID_ARGUMENT, 'MaximumAppendSizeExceeded'],
        [anyRevision(''), 1, 2, status.INVALID_ARGUMENT, 'BadRequest'],
      ] as const
      for (const [options, events, bytes, code, text] of cases) {
        const error = (await only(batchOf(options, events, bytes).setIsFinal(true))).getError()
        expect([error?.getCode(), error?.getMessage()]).to.deep.equal([code, text])
        expect(error?.getDetails()?.getTypeName()).to.equal(`event_store.client.${text}`)
      }
    })

    it('names the reason in the details of a bad request', async () => {
      const error = (await only(batchOf(anyRevision(''), 1).setIsFinal(true))).getError()
      const details = shared.BadRequest.deserializeBinary(error?.getDetails()?.getValue_asU8() ?? Buffer.alloc(0))
      expect(details.getMessage()).to.equal('The stream has no name.')
    })

    it('does not repeat the expected revision in a response', async () => {
      const stream = newStream()
      const response = await only(batchOf(anyRevision(stream), 1).setIsFinal(true))
      expect(response.hasSuccess()).to.equal(true)
      expect(streamName(response.getStreamIdentifier())).to.equal(stream)
      expect(response.getExpectedStreamPositionCase()).to.equal(0)
    })

    it('accepts the deadline of newer clients, which is a duration', async () => {
      const late = await only(withDuration(batchOf(anyRevision(newStream()), 1).setIsFinal(true), 0))
      expect([late.getError()?.getCode(), late.getError()?.getMessage()]).to.deep.equal([
        status.DEADLINE_EXCEEDED,
        'Timeout',
      ])
      const inTime = await only(withDuration(batchOf(anyRevision(newStream()), 1).setIsFinal(true), 60))
      expect(inTime.hasSuccess()).to.equal(true)
    })

    it('refuses an oversized append before its last message, and ignores the rest of it', async () => {
      const oversized = batchOf(anyRevision(newStream()), OVERSIZED_EVENTS, EVENT_BYTES)
      const rest = batchOf(undefined, 1).setCorrelationId(oversized.getCorrelationId()).setIsFinal(true)
      const next = batchOf(anyRevision(newStream()), 1).setIsFinal(true)
      const [refused, written] = await batch([oversized, rest, next], 2)
      expect(refused?.getError()?.getMessage()).to.equal('MaximumAppendSizeExceeded')
      expect(written?.hasSuccess()).to.equal(true)
    })
  })

  describe('Append', () => {
    const metadata = { type: 'Made', 'content-type': JSON_CONTENT }

    it('refuses an oversized append while it is still being sent', async () => {
      const failed = failureOf(await append(newStream(), OVERSIZED_EVENTS, EVENT_BYTES, metadata))
      expect(failed.code).to.equal(status.INVALID_ARGUMENT)
      expect(failed.metadata.get('exception')).to.deep.equal(['maximum-append-size-exceeded'])
    })

    it('names required metadata that an event lacks', async () => {
      for (const name of ['type', 'content-type'] as const) {
        const { [name]: _, ...others } = metadata
        const failed = failureOf(await append(newStream(), 1, 2, others))
        expect([failed.code, failed.details]).to.deep.equal([
          status.INVALID_ARGUMENT,
          `Required Metadata Property '${name}' is missing`,
        ])
        expect(failed.metadata.get('exception')).to.deep.equal(['missing-required-metadata-property'])
      }
    })
  })

  it('names the operation that is refused for a wrong expected revision', async () => {
    const stream = newStream()
    await raw.append(stream, 1)
    const options = new streams.DeleteReq.Options().setStreamIdentifier(identifierOf(stream)).setRevision('7')
    const failed = await new Promise<ServiceError | null>(resolve =>
      client.delete(new streams.DeleteReq().setOptions(options), resolve),
    )
    expect(failed?.details).to.equal(
      `Delete failed due to WrongExpectedVersion. Stream: ${stream}, Expected version: 7, Actual version: 0`,
    )
  })

  describe('Read', () => {
    const read = (options: ReadReq.Options): Promise<ReadResp[]> =>
      new Promise((resolve, reject) => {
        const received: ReadResp[] = []
        const call = client.read(new streams.ReadReq().setOptions(options))
        call.on('data', (response: ReadResp) => received.push(response))
        call.on('error', reject).on('end', () => resolve(received))
      })
    const common = (count: string): ReadReq.Options =>
      new streams.ReadReq.Options()
        .setCount(count)
        .setUuidOption(new streams.ReadReq.Options.UUIDOption().setString(new shared.Empty()))
        .setControlOption(new streams.ReadReq.Options.ControlOption().setCompatibility(1))

    it('prefers the regular expression of a filter to its prefixes', async () => {
      const [a, b] = [newStream('precedence'), newStream('precedence')]
      await raw.append(a, 1)
      await raw.append(b, 1)
      const expression = new streams.ReadReq.Options.FilterOptions.Expression()
      const filter = new streams.ReadReq.Options.FilterOptions()
        .setStreamIdentifier(expression.setRegex(`^${a}$`).setPrefixList([b]))
        .setCount(new shared.Empty())
        .setCheckpointintervalmultiplier(1)
      const all = new streams.ReadReq.Options.AllOptions().setStart(new shared.Empty())
      const responses = await read(common(MAX_COUNT).setAll(all).setFilter(filter))
      const names = responses.map(response => streamName(response.getEvent()?.getEvent()?.getStreamIdentifier()))
      expect(names).to.deep.equal([a])
    })

    /** The revisions of the events, and the positions of the stream in the order of their messages. */
    const positions = async (stream: string, from: string, count: string): Promise<string[]> => {
      const options = new streams.ReadReq.Options.StreamOptions().setStreamIdentifier(identifierOf(stream))
      const requested = common(count).setNoFilter(new shared.Empty()).setStream(options.setRevision(from))
      return (await read(requested)).map(response =>
        response.hasFirstStreamPosition()
          ? `first ${response.getFirstStreamPosition()}`
          : response.hasLastStreamPosition()
            ? `last ${response.getLastStreamPosition()}`
            : `event ${response.getEvent()?.getEvent()?.getStreamRevision()}`,
      )
    }

    it('names the first revision that a reader beyond the end of a stream, or before its beginning, can read', async () => {
      const stream = newStream()
      await raw.append(stream, 6)
      expect(await positions(stream, '4', MAX_COUNT)).to.deep.equal(['event 4', 'event 5', 'last 5'])
      expect(await positions(stream, '6', MAX_COUNT)).to.deep.equal(['last 5'])
      expect(await positions(stream, '9', MAX_COUNT)).to.deep.equal(['first 6', 'last 5'])
      await raw.client.setStreamMetadata(stream, { truncateBefore: 4 })
      expect(await positions(stream, '0', MAX_COUNT)).to.deep.equal(['event 4', 'event 5', 'last 5'])
      expect(await positions(stream, '0', '2')).to.deep.equal(['first 4', 'event 4', 'event 5', 'last 5'])
    })
  })
})
