import shared from '@eventstore/db-client/generated/shared_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import type { ReadResp } from '@eventstore/db-client/generated/streams_pb.js'
import { expect } from 'chai'
import fc from 'fast-check'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { type Answer, answerOf } from '../../src/adapters/eventstoredb/answers.ts'
import { Malformed } from '../../src/grpc/protobufReader.ts'
import { Unavailable } from '../../src/ports.ts'
import { all } from '../contracts/eventStoreFixtures.ts'
import { rejectionOf } from '../support/rejection.ts'
import { startScriptedStore } from './eventstoredbWire.ts'

const { ReadEvent, Checkpoint, CaughtUp, FellBehind, StreamNotFound, SubscriptionConfirmation } = streams.ReadResp

const text = fc.string({ unit: 'binary', maxLength: 40 })
const uint64 = fc.oneof(fc.bigInt(0n, 300n), fc.bigInt(0n, 2n ** 64n - 1n))
const bytes = fc.oneof(
  fc.constant(new Uint8Array()),
  fc.json().map(json => new Uint8Array(Buffer.from(json))),
  fc.uint8Array({ maxLength: 300 }),
)

/** Unknown fields of each wire type that is still in use. */
const unknown = fc
  .array(
    fc.oneof(
      uint64.map(value => {
        const numbered = new Checkpoint().setCommitPosition(value.toString()).serializeBinary().slice(1)
        return Buffer.from([0xf8, 0x07, ...(numbered.length === 0 ? [0] : numbered)])
      }),
      fc.uint8Array({ minLength: 8, maxLength: 8 }).map(eight => Buffer.from([0xf9, 0x07, ...eight])),
      fc.uint8Array({ minLength: 4, maxLength: 4 }).map(four => Buffer.from([0xfd, 0x07, ...four])),
      fc.uint8Array({ maxLength: 100 }).map(some => Buffer.from([0xfa, 0x07, some.length, ...some])),
    ),
    { maxLength: 2 },
  )
  .map(fields => Buffer.concat(fields))

const lengthOf = (bytes: Uint8Array): number[] => {
  const digits: number[] = []
  let rest = bytes.length
  for (; rest > 127; rest >>= 7) digits.push((rest & 127) | 128)
  return [...digits, rest]
}
const field = (number: number, value: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from([(number << 3) | 2, ...lengthOf(value)]), value])

const recorded = fc
  .record({
    id: fc.oneof(fc.uuid(), fc.constant('')),
    stream: text,
    revision: uint64,
    position: uint64,
    type: text,
    ticks: fc.bigInt(0n, 2n ** 63n - 1n),
    data: bytes,
    metadata: bytes,
    more: fc.dictionary(text, text, { maxKeys: 2 }),
    has: fc.record({ id: fc.boolean(), stream: fc.boolean(), created: fc.boolean() }),
  })
  .map(({ has, ...given }) => {
    const event = new ReadEvent.RecordedEvent()
      .setStreamRevision(given.revision.toString())
      .setPreparePosition(given.position.toString())
      .setCommitPosition(given.position.toString())
      .setCustomMetadata(given.metadata)
      .setData(given.data)
    if (has.id) event.setId(new shared.UUID().setString(given.id))
    if (has.stream) event.setStreamIdentifier(new shared.StreamIdentifier().setStreamName(Buffer.from(given.stream)))
    const described = event.getMetadataMap()
    for (const [key, value] of Object.entries(given.more)) described.set(key, value)
    described.set('type', given.type).set('content-type', 'application/json')
    if (has.created) described.set('created', given.ticks.toString())
    else described.del('created')
    return Buffer.from(event.serializeBinary())
  })

/** A read event with the given content, and with unknown fields before and after it at each level. */
const eventAnswer = fc
  .record({ event: fc.option(recorded), link: fc.option(recorded), position: uint64, more: fc.tuple(unknown, unknown) })
  .map(({ event, link, position, more: [before, behind] }) => {
    const around = (message: Uint8Array): Buffer => Buffer.concat([before, message, behind])
    const rest = new ReadEvent().setCommitPosition(position.toString()).serializeBinary()
    const parts = [
      ...(event === null ? [] : [field(1, around(event))]),
      ...(link === null ? [] : [field(2, around(link))]),
      rest,
    ]
    return around(field(1, around(Buffer.concat(parts))))
  })

const otherAnswer = fc
  .record({ position: uint64, more: unknown, kind: fc.integer({ min: 0, max: 7 }) })
  .map(({ position, more, kind }) => {
    const at = position.toString()
    const answers: readonly ReadResp[] = [
      new streams.ReadResp().setCheckpoint(new Checkpoint().setCommitPosition(at).setPreparePosition(at)),
      new streams.ReadResp().setConfirmation(new SubscriptionConfirmation().setSubscriptionId('s')),
      new streams.ReadResp().setCaughtUp(new CaughtUp()),
      new streams.ReadResp().setFellBehind(new FellBehind()),
      new streams.ReadResp().setStreamNotFound(new StreamNotFound()),
      new streams.ReadResp().setFirstStreamPosition(at),
      new streams.ReadResp().setLastStreamPosition(at),
      new streams.ReadResp(),
    ]
    return Buffer.concat([more, answers[kind]?.serializeBinary() ?? Buffer.alloc(0)])
  })

const jsonIn = (bytes: Uint8Array): unknown => {
  const text = Buffer.from(bytes).toString('utf8')
  if (text === '') return {}
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}

/** The same answer, decoded by the client's decoder. */
const byTheClient = (bytes: Uint8Array): unknown => {
  const answer = streams.ReadResp.deserializeBinary(new Uint8Array(bytes))
  const event = answer.getEvent()?.getEvent()
  if (answer.hasCheckpoint())
    return { kind: 'checkpoint', position: BigInt(answer.getCheckpoint()?.getCommitPosition() ?? 0) }
  if (answer.hasCaughtUp()) return { kind: 'caught_up' }
  if (answer.hasConfirmation()) return { kind: 'confirmed' }
  if (event === undefined) return { kind: 'other' }
  const described = event.getMetadataMap()
  return {
    kind: 'event',
    event: {
      id: event.getId()?.getString() ?? '',
      type: described.get('type'),
      data: jsonIn(event.getData_asU8()),
      metadata: jsonIn(event.getCustomMetadata_asU8()),
      stream: Buffer.from(event.getStreamIdentifier()?.getStreamName_asU8() ?? []).toString('utf8'),
      revision: BigInt(event.getStreamRevision()),
      position: BigInt(event.getCommitPosition()),
      storedAt: new Date(Number(BigInt(described.get('created') ?? '0') / 10_000n)).toISOString(),
    },
  }
}

/** The encoded message of an event. */
const plain = (): Buffer => {
  const event = new ReadEvent.RecordedEvent()
    .setId(new shared.UUID().setString('ff0102ac-0304-4506-8708-090a0b0c0d0e'))
    .setStreamIdentifier(new shared.StreamIdentifier().setStreamName(Buffer.from('invoice-1')))
    .setStreamRevision('7')
    .setCommitPosition('4711')
    .setData(Buffer.from('{"amount":100}'))
  event.getMetadataMap().set('type', 'PaymentApplied').set('created', '17952306410549183')
  return Buffer.from(new streams.ReadResp().setEvent(new ReadEvent().setEvent(event)).serializeBinary())
}

describe('EventStoreDB adapter: decoding of answers', () => {
  it('gives the same results as the decoder of the client, also with unknown fields', () => {
    fc.assert(
      fc.property(fc.oneof(eventAnswer, otherAnswer), bytes => {
        const answer: Answer = answerOf(bytes)
        expect(answer).to.deep.equal(byTheClient(bytes))
      }),
      { numRuns: 1000 },
    )
  })

  it('decodes an event without metadata, and a link', () => {
    const answer = answerOf(plain())
    expect(answer).to.deep.equal({
      kind: 'event',
      event: {
        id: 'ff0102ac-0304-4506-8708-090a0b0c0d0e',
        type: 'PaymentApplied',
        data: { amount: 100 },
        metadata: {},
        stream: 'invoice-1',
        revision: 7n,
        position: 4711n,
        storedAt: new Date(1_795_230_641_054).toISOString(),
      },
    })
    const onlyLink = field(
      1,
      field(
        2,
        Buffer.from(streams.ReadResp.deserializeBinary(plain()).getEvent()?.getEvent()?.serializeBinary() ?? []),
      ),
    )
    expect(answerOf(onlyLink)).to.deep.equal({ kind: 'other' })
  })

  it('refuses a truncated answer, and lengths beyond their message', () => {
    const whole = plain()
    for (let length = 1; length < whole.length; length += 1)
      expect(() => answerOf(whole.subarray(0, length)), `${length} bytes`).to.throw(Malformed)
    const inner = whole.subarray(whole.length - 20)
    expect(() => answerOf(field(1, Buffer.concat([Buffer.from([0x0a, 0x7f]), inner])))).to.throw(Malformed)
    expect(() => answerOf(field(3, Buffer.from([0x08, ...Array.from({ length: 11 }, () => 0xff), 1])))).to.throw(
      Malformed,
    )
    expect(() => answerOf(Buffer.from([0x0b, 0x0c])), 'a group').to.throw(Malformed)
  })

  it('reports a truncated answer as an outage, and not as the end of the stream', async () => {
    const wire = await startScriptedStore()
    const store = openEventStore({ connectionString: wire.address })
    try {
      const short = Object.assign(new streams.ReadResp(), { serializeBinary: () => plain().subarray(0, 40) })
      wire.script.read = call => {
        call.write(streams.ReadResp.deserializeBinary(plain()))
        call.write(short)
        call.end()
      }
      const failure = await rejectionOf(all(store.readStream('invoice-1')))
      expect(failure).to.be.instanceOf(Unavailable)
      expect(String(failure.cause)).to.contain('Malformed protobuf')
    } finally {
      await store.close()
      wire.stop()
    }
  })
})
