import { randomUUID } from 'node:crypto'
import code from '@eventstore/db-client/generated/code_pb.js'
import shared from '@eventstore/db-client/generated/shared_pb.js'
import statusPb from '@eventstore/db-client/generated/status_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import { expect } from 'chai'
import fc from 'fast-check'
import any from 'google-protobuf/google/protobuf/any_pb.js'
import empty from 'google-protobuf/google/protobuf/empty_pb.js'
import { type Append, appendAnswerOf, writeAppend } from '../../src/adapters/eventstoredb/appendMessages.ts'
import { UnknownResponse } from '../../src/adapters/eventstoredb/errors.ts'
import { MessageSplitter } from '../../src/grpc/framing.ts'
import { Malformed } from '../../src/grpc/protobufReader.ts'
import { MessageWriter } from '../../src/grpc/protobufWriter.ts'
import type { JsonObject } from '../../src/ports.ts'
import { event } from '../contracts/eventStoreFixtures.ts'
import { uuidMessage } from '../../src/embedded/eventstore/protocol/messages.ts'

const MESSAGE_BYTES_MAX = 17 * 1024 * 1024

const text = fc.string({ unit: 'binary', maxLength: 60 })
const uint64 = fc.oneof(fc.bigInt(0n, 300n), fc.bigInt(0n, 2n ** 53n + 5n), fc.bigInt(0n, 2n ** 64n - 1n))
const object = fc
  .dictionary(text, fc.jsonValue(), { maxKeys: 3 })
  .map(value => JSON.parse(JSON.stringify(value)) as JsonObject)

const append: fc.Arbitrary<Append> = fc.record({
  stream: text,
  expected: fc.oneof(fc.constant('no_stream' as const), uint64),
  events: fc.array(fc.record({ id: fc.uuid(), type: text, data: object, metadata: object }), { maxLength: 4 }),
})

/** As the UTF-8 of a stream's name or a type can be: without lone surrogates. */
const utf8 = (value: string): string => Buffer.from(value, 'utf8').toString('utf8')

/** A request, decoded by the client's decoder. */
const byTheClient = (bytes: Uint8Array): unknown => {
  const request = streams.BatchAppendReq.deserializeBinary(new Uint8Array(bytes))
  const options = request.getOptions()
  return {
    id: request.getCorrelationId()?.getString(),
    isFinal: request.getIsFinal(),
    hasDeadline: options?.hasDeadline(),
    append: {
      stream: Buffer.from(options?.getStreamIdentifier()?.getStreamName_asU8() ?? []).toString('utf8'),
      expected: options?.hasStreamPosition()
        ? BigInt(options.getStreamPosition())
        : options?.hasNoStream()
          ? 'no_stream'
          : undefined,
      events: request.getProposedMessagesList().map(proposed => ({
        id: proposed.getId()?.getString(),
        type: proposed.getMetadataMap().get('type'),
        contentType: proposed.getMetadataMap().get('content-type'),
        data: JSON.parse(Buffer.from(proposed.getData_asU8()).toString('utf8')) as unknown,
        metadata: JSON.parse(Buffer.from(proposed.getCustomMetadata_asU8()).toString('utf8')) as unknown,
      })),
    },
  }
}

const target = (id: string, { stream, expected, events }: Append): unknown => ({
  id,
  isFinal: true,
  hasDeadline: false,
  append: {
    stream: utf8(stream),
    expected,
    events: events.map(({ type, ...rest }) => ({ ...rest, type: utf8(type), contentType: 'application/json' })),
  },
})

describe('EventStoreDB adapter: messages of appends', () => {
  const writer = new MessageWriter()

  describe('a request', () => {
    it('is what the decoder of the client reads', () => {
      fc.assert(
        fc.property(append, fc.uuid(), (requested, id) => {
          writer.begin()
          writeAppend(writer, id, requested)
          expect(byTheClient(writer.message())).to.deep.equal(target(id, requested))
        }),
        { numRuns: 1000 },
      )
    })

    it('shares a buffer with others, in order, however large they are', () => {
      fc.assert(
        fc.property(fc.array(append, { maxLength: 5 }), fc.nat(100_000), (requested, padding) => {
          const large = [...requested, { stream: 's', expected: 0n, events: [event({ padding: 'ü'.repeat(padding) })] }]
          const ids = large.map(() => randomUUID())
          writer.begin()
          for (const [n, one] of [...large.entries()].toReversed()) {
            const since = writer.size()
            writeAppend(writer, ids[n] ?? '', one)
            writer.framed(since)
          }
          const messages = new MessageSplitter(MESSAGE_BYTES_MAX).messagesWith(writer.message())
          expect(messages.map(byTheClient)).to.deep.equal(large.map((one, n) => target(ids[n] ?? '', one)))
        }),
        { numRuns: 100 },
      )
    })

    it('of more than 3 MiB of data is refused, and those beside it are intact after it is discarded', () => {
      const small: Append = { stream: 's', expected: 'no_stream', events: [event()] }
      const large: Append = { ...small, events: [event({ x: 'x'.repeat(2 ** 21) }), event({ x: 'x'.repeat(2 ** 21) })] }
      writer.begin()
      writeAppend(writer, 'first', small)
      const before = Buffer.from(writer.message())
      const since = writer.size()
      expect(() => writeAppend(writer, 'second', large)).to.throw(RangeError, 'too large')
      writer.discard(since)
      expect(writer.message()).to.deep.equal(before)
    })
  })

  describe('an answer', () => {
    const answer = fc
      .record({
        id: fc.uuid(),
        form: fc.constantFrom('string' as const, 'structured' as const),
        revision: fc.option(uint64),
        position: fc.option(uint64),
        stream: text,
      })
      .map(({ id, form, revision, position, stream }) => {
        const success = new streams.BatchAppendResp.Success()
        if (revision === null) success.setNoStream(new empty.Empty())
        else success.setCurrentRevision(revision.toString())
        const at = position?.toString()
        if (at === undefined) success.setNoPosition(new empty.Empty())
        else success.setPosition(new shared.AllStreamPosition().setCommitPosition(at).setPreparePosition('7'))
        const identifier = new shared.StreamIdentifier().setStreamName(Buffer.from(stream))
        const message = new streams.BatchAppendResp()
          .setCorrelationId(uuidMessage(id, form))
          .setStreamIdentifier(identifier)
          .setSuccess(success)
        const outcome = { ok: true, revision: revision ?? 0n, position: position ?? 0n }
        return { bytes: Buffer.from(message.serializeBinary()), wanted: { id, outcome } }
      })

    it('of success is what the encoder of the client wrote, with an id of either form', () => {
      fc.assert(
        fc.property(answer, ({ bytes, wanted: target }) => {
          expect(appendAnswerOf(bytes)).to.deep.equal(target)
          // A field of a newer server, of each wire type.
          const unknown = Buffer.from([0xf8, 0x07, 5, 0xfa, 0x07, 2, 1, 2, 0xfd, 0x07, 1, 2, 3, 4])
          expect(appendAnswerOf(Buffer.concat([unknown, bytes, unknown]))).to.deep.equal(target)
        }),
        { numRuns: 1000 },
      )
    })

    const refusal = (name: string, detail: Uint8Array): Buffer => {
      const packed = new any.Any()
      packed.pack(detail, `event_store.client.${name}`)
      const error = new statusPb.Status().setCode(code.Code.ALREADY_EXISTS).setMessage(name).setDetails(packed)
      const message = new streams.BatchAppendResp().setCorrelationId(uuidMessage(randomUUID(), 'string'))
      return Buffer.from(message.setError(error).serializeBinary())
    }

    it('of a refusal is the error of the client', () => {
      const conflict = new shared.WrongExpectedVersion().setCurrentStreamRevision('7').setExpectedStreamPosition('3')
      const missing = new shared.WrongExpectedVersion().setCurrentNoStream(new empty.Empty())
      const exceeded = new shared.MaximumAppendSizeExceeded().setMaxappendsize(1024)
      const outcomeOf = (name: string, detail: Uint8Array) => appendAnswerOf(refusal(name, detail)).outcome
      expect(outcomeOf('WrongExpectedVersion', conflict.serializeBinary())).to.include({
        type: 'wrong-expected-version',
        actualVersion: 7n,
        expectedVersion: 3n,
      })
      expect(outcomeOf('WrongExpectedVersion', missing.serializeBinary())).to.include({ actualVersion: 'no_stream' })
      expect(outcomeOf('MaximumAppendSizeExceeded', exceeded.serializeBinary())).to.include({
        type: 'maximum-append-size-exceeded',
        maxAppendSize: 1024,
      })
      expect(outcomeOf('AccessDenied', new Uint8Array())).to.include({ type: 'access-denied' })
      expect(outcomeOf('Timeout', new Uint8Array())).to.include({ type: 'deadline-exceeded' })
    })

    it('without success and error is unknown', () => {
      const message = new streams.BatchAppendResp().setCorrelationId(uuidMessage('a', 'string'))
      const { id, outcome } = appendAnswerOf(Buffer.from(message.serializeBinary()))
      expect(id).to.equal('a')
      expect(outcome).to.be.instanceOf(UnknownResponse)
    })

    it('that is truncated is refused', () => {
      const success = new streams.BatchAppendResp.Success()
        .setCurrentRevision('300')
        .setPosition(new shared.AllStreamPosition().setCommitPosition('70000'))
      const message = new streams.BatchAppendResp().setCorrelationId(uuidMessage(randomUUID(), 'structured'))
      const bytes = Buffer.from(message.setSuccess(success).serializeBinary())
      const lastOfId = bytes.length - Buffer.from(success.serializeBinary()).length - 2
      for (let length = 1; length < bytes.length; length += 1)
        if (length !== lastOfId)
          expect(() => appendAnswerOf(bytes.subarray(0, length)), `${length}`).to.throw(Malformed)
    })
  })
})
