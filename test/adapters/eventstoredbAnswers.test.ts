import { Metadata, status } from '@grpc/grpc-js'
import { expect } from 'chai'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { type EventStore, Unavailable } from '../../src/ports.ts'
import { event, events, idsOf } from '../contracts/eventStoreFixtures.ts'
import { until } from '../embedded/childProcesses.ts'
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

const failureOf = async (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  )

const expectUnavailable = (failure: unknown, effect: 'none' | 'unknown'): void => {
  expect(failure).to.be.instanceOf(Unavailable).and.to.include({ dependency: 'event store', effect })
}

describe('EventStoreDB adapter: responses to an append', function () {
  this.timeout(20_000)
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

  it('sends no deadline: the clocks of the store and of this process need not agree', async () => {
    const seen: unknown[] = []
    wire.script.append = (message, call) => {
      seen.push({ message: message.getOptions()?.hasDeadline(), call: call.getDeadline() })
      call.write(success(message, 0n, 733n))
    }
    expect(await store.append('s-1', [event()], 'no_stream')).to.deep.equal({ ok: true, revision: 0n, position: 733n })
    expect(seen).to.deep.equal([{ message: false, call: Number.POSITIVE_INFINITY }])
  })

  it('without error and success is sent again, then reported as unknown', async () => {
    let sent = 0
    wire.script.append = (message, call) => {
      sent += 1
      call.write(answerTo(message))
    }
    const startedAtMs = performance.now()
    expectUnavailable(await failureOf(store.append('s-1', [event()], 'no_stream')), 'unknown')
    expect(performance.now() - startedAtMs).to.be.lessThan(DEADLINE_MS)
    expect(sent).to.equal(2)
  })

  it('with an error without details is reported as unknown, and the other appends of the call are answered', async () => {
    wire.script.append = (message, call) =>
      message.getProposedMessagesList().length === 1
        ? call.write(refusal(message, {}))
        : call.write(success(message, 1n, 838n))
    const [bare, other] = await Promise.all([
      failureOf(store.append('s-1', [event()], 'no_stream')),
      store.append('s-2', events(2), 'no_stream'),
    ])
    expectUnavailable(bare, 'unknown')
    expect(other).to.deep.equal({ ok: true, revision: 1n, position: 838n })
  })

  it('reports that nothing was written', async () => {
    const text = 'The database of the event store cannot be reached; nothing was written.'
    const detail = 'event_store.client.Unknown'
    wire.script.append = (message, call) =>
      call.write(refusal(message, { code: status.UNAVAILABLE, message: text, detail }))
    expectUnavailable(await failureOf(store.append('s-1', [event()], 'no_stream')), 'none')
  })

  it('continues on another call when the store ends the present one', async () => {
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

  it('settles every append of a call that ends', async () => {
    wire.script.append = (_, call) => void call.end()
    const failures = await Promise.all(
      Array.from({ length: 20 }, (_, n) => failureOf(store.append(`s-${n}`, [event()], 'no_stream'))),
    )
    for (const failure of failures) expectUnavailable(failure, 'unknown')
  })

  it('does not send, once it has given up, what was still waiting for a connection', async () => {
    const streams: string[] = []
    wire.script.append = (message, call) => {
      streams.push(Buffer.from(message.getOptions()?.getStreamIdentifier()?.getStreamName_asU8() ?? []).toString())
      if (streams.length > 1) call.write(success(message, 0n, 733n))
    }
    expectUnavailable(await failureOf(store.append('s-1', [event()], 'no_stream')), 'unknown')
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

    it('the append succeeded if its own events are at its revisions', async () => {
      wire.script.read = call => sendEvents(call, idsOf(sent))
      expect(await store.append('s-1', sent, 'no_stream')).to.deep.equal({ ok: true, revision: 1n, position: 1001n })
    })

    it('the append failed if other events are there', async () => {
      wire.script.read = call => sendEvents(call, idsOf(events(2)))
      expect(await store.append('s-1', sent, 'no_stream')).to.deep.equal({ ok: false, actual: 1n })
    })

    it('the append may still succeed while no events are there', async () => {
      wire.script.read = call => sendEvents(call, [])
      expectUnavailable(await failureOf(store.append('s-1', sent, 'no_stream')), 'unknown')
    })

    it('the outcome is unknown if nothing can be read', async () => {
      wire.script.read = () => undefined
      expectUnavailable(await failureOf(store.append('s-1', sent, 'no_stream')), 'unknown')
      await until(() => sends === 2)
    })
  })
})
