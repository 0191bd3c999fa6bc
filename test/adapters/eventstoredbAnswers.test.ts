import { Metadata, status } from '@grpc/grpc-js'
import { expect } from 'chai'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { type EventStore, Unavailable } from '../../src/ports.ts'
import { event, events, idsOf } from '../contracts/eventStoreFixtures.ts'
import { eventually } from '../support/eventually.ts'
import { rejectionOf } from '../support/rejection.ts'
import {
  type ScriptedStore,
  answerTo,
  refusal,
  sendEvents,
  startScriptedStore,
  success,
  wrongVersion,
} from './eventstoredbWire.ts'

const DEADLINE_MS = 2000
/** Longer than a test may take, so that a test which waits for this deadline fails. */
const UNREACHED_DEADLINE_MS = 60_000

const expectUnavailable = (failure: unknown, effect: 'none' | 'unknown'): void => {
  expect(failure).to.be.instanceOf(Unavailable).and.to.include({ dependency: 'event store', effect })
}

describe('EventStoreDB adapter: an append', () => {
  let wire: ScriptedStore
  let store: EventStore

  beforeEach(async () => {
    wire = await startScriptedStore()
    store = openEventStore({ connectionString: wire.address, appendDeadlineMs: DEADLINE_MS })
  })
  afterEach(async () => {
    await store.close()
    wire.stop()
  })

  it('has no deadline on the wire, because the clocks of the store and of this process may differ', async () => {
    const seen: unknown[] = []
    wire.script.append = (message, call) => {
      seen.push({ message: message.getOptions()?.hasDeadline(), call: call.getDeadline() })
      call.write(success(message, 0n, 733n))
    }
    expect(await store.append('s-1', [event()], 'no_stream')).to.deep.equal({ ok: true, revision: 0n, position: 733n })
    expect(seen).to.deep.equal([{ message: false, call: Number.POSITIVE_INFINITY }])
  })

  it('is sent again after a response without error and success, then reported as unknown before its deadline', async () => {
    const patient = openEventStore({ connectionString: wire.address, appendDeadlineMs: UNREACHED_DEADLINE_MS })
    let sent = 0
    wire.script.append = (message, call) => {
      sent += 1
      call.write(answerTo(message))
    }
    expectUnavailable(await rejectionOf(patient.append('s-1', [event()], 'no_stream')), 'unknown')
    expect(sent).to.equal(2)
    await patient.close()
  })

  it('is reported as unknown after an error without details, and others on the same call succeed', async () => {
    wire.script.append = (message, call) =>
      message.getProposedMessagesList().length === 1
        ? call.write(refusal(message, {}))
        : call.write(success(message, 1n, 838n))
    const [failure, other] = await Promise.all([
      rejectionOf(store.append('s-1', [event()], 'no_stream')),
      store.append('s-2', events(2), 'no_stream'),
    ])
    expectUnavailable(failure, 'unknown')
    expect(other).to.deep.equal({ ok: true, revision: 1n, position: 838n })
  })

  it('is reported without effect when the store says that nothing was written', async () => {
    const text = 'The database of the event store cannot be reached; nothing was written.'
    const detail = 'event_store.client.Unknown'
    wire.script.append = (message, call) =>
      call.write(refusal(message, { code: status.UNAVAILABLE, message: text, detail }))
    expectUnavailable(await rejectionOf(store.append('s-1', [event()], 'no_stream')), 'none')
  })

  it('is sent on another call when the store ends the present one', async () => {
    const calls = new Set<unknown>()
    wire.script.append = (message, call) => {
      calls.add(call)
      if (calls.size === 1) call.end()
      else call.write(success(message, 0n, 733n))
    }
    expect(await store.append('s-1', [event()], 'no_stream')).to.deep.include({ ok: true, revision: 0n })
    expect(await store.append('s-2', [event()], 'no_stream')).to.deep.include({ ok: true, revision: 0n })
    expect(calls.size).to.equal(2)
  })

  it('is reported as unknown when its call ends, as every other of that call', async () => {
    wire.script.append = (_, call) => void call.end()
    const failures = await Promise.all(
      Array.from({ length: 20 }, (_, n) => rejectionOf(store.append(`s-${n}`, [event()], 'no_stream'))),
    )
    for (const failure of failures) expectUnavailable(failure, 'unknown')
  })

  it('is not sent again after its deadline', async () => {
    const streams: string[] = []
    wire.script.append = (message, call) => {
      streams.push(Buffer.from(message.getOptions()?.getStreamIdentifier()?.getStreamName_asU8() ?? []).toString())
      if (streams.length > 1) call.write(success(message, 0n, 733n))
    }
    expectUnavailable(await rejectionOf(store.append('s-1', [event()], 'no_stream')), 'unknown')
    expect(await store.append('s-2', [event()], 'no_stream')).to.deep.include({ ok: true })
    expect(streams).to.deep.equal(['s-1', 's-2'])
  })

  describe('after a lost first response and a resend that is refused as a wrong version', () => {
    const sent = events(2)
    let sends = 0

    beforeEach(() => {
      sends = 0
      wire.script.append = (message, call) => {
        sends += 1
        if (sends > 1) return void call.write(wrongVersion(message, 1n))
        const lost = { code: status.UNAVAILABLE, details: 'The leader is gone.', metadata: new Metadata() }
        call.emit('error', lost)
      }
    })

    it('succeeded if its own events are at its revisions', async () => {
      wire.script.read = call => sendEvents(call, idsOf(sent))
      expect(await store.append('s-1', sent, 'no_stream')).to.deep.equal({ ok: true, revision: 1n, position: 1001n })
    })

    it('failed if other events are there', async () => {
      wire.script.read = call => sendEvents(call, idsOf(events(2)))
      expect(await store.append('s-1', sent, 'no_stream')).to.deep.equal({ ok: false, actual: 1n })
    })

    it('is reported as unknown while no events are there', async () => {
      wire.script.read = call => sendEvents(call, [])
      expectUnavailable(await rejectionOf(store.append('s-1', sent, 'no_stream')), 'unknown')
    })

    it('is reported as unknown if nothing can be read', async () => {
      wire.script.read = () => undefined
      expectUnavailable(await rejectionOf(store.append('s-1', sent, 'no_stream')), 'unknown')
      await eventually(() => sends === 2)
    })
  })
})
