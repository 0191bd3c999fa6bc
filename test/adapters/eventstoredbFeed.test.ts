import { status } from '@grpc/grpc-js'
import { expect } from 'chai'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import type { EventStore, FeedItem } from '../../src/ports.ts'
import { caughtUp, feed } from '../contracts/eventStoreFixtures.ts'
import { holdsInOneOf } from '../support/comparedTimes.ts'
import { eventually } from '../support/eventually.ts'
import { type ReadCall, type ScriptedStore, isSubscription, reading, startScriptedStore } from './eventstoredbWire.ts'

const TARGET = 'invoice-1'
const OTHER = 'payment-1'
const CATEGORIES = ['invoice']

const shown = (item: FeedItem): string => {
  if (item.kind === 'event') return `event ${item.event.position}`
  return item.kind === 'checkpoint' ? `up to ${item.position}` : item.kind
}

/** The position that a subscription begins after; undefined for the start or the end of the log. */
const positionOf = (call: ReadCall): bigint | undefined => {
  const position = call.request.getOptions()?.getAll()?.getPosition()?.getCommitPosition()
  return position === undefined ? undefined : BigInt(position)
}

const lose = (call: ReadCall): void => void call.emit('error', { code: status.UNAVAILABLE, details: 'lost' })
const tooSlow = (call: ReadCall): void =>
  void call.emit('error', {
    code: status.ABORTED,
    details: 'Operation timed out: Consumer too slow to handle event while live',
  })

describe('EventStoreDB adapter: a subscription', () => {
  let node: ScriptedStore
  let store: EventStore
  let subscriptions: ReadCall[]
  /** The newest event of the log. */
  let newest: ReturnType<typeof reading.event>
  let begin: (call: ReadCall) => void

  beforeEach(async () => {
    node = await startScriptedStore()
    store = openEventStore({ connectionString: node.address })
    subscriptions = []
    newest = reading.event(100n, { stream: TARGET })
    begin = () => undefined
    node.script.read = call => {
      if (!isSubscription(call)) {
        call.write(newest)
        call.end()
        return
      }
      subscriptions.push(call)
      call.write(reading.confirmed())
      begin(call)
    }
  })
  afterEach(async () => {
    await store.close()
    node.stop()
  })

  const subscribe = () => feed(store, { after: 'start', categories: CATEGORIES })
  const send = (call: ReadCall, ...messages: Parameters<ReadCall['write']>[0][]): void => {
    for (const message of messages) call.write(message)
  }

  describe('whose store announces a checkpoint', () => {
    it('passes it on when a later one shows that no event at its position is missing', async () => {
      begin = call => send(call, ...[200n, 300n, 400n].map(reading.checkpoint))
      const received = subscribe()
      await received.until(({ items }) => items.length === 2)
      await received.stop()
      expect(received.items.map(shown)).to.deep.equal(['up to 200', 'up to 300'])
    })

    it('does not pass on the position that the next event gets', async () => {
      begin = call => send(call, reading.event(100n, { stream: TARGET }), reading.checkpoint(200n), reading.caughtUp())
      const received = subscribe()
      await received.until(caughtUp)
      begin = () => undefined
      lose(subscriptions[0] as ReadCall)
      await eventually(() => subscriptions.length === 2)
      expect(positionOf(subscriptions[1] as ReadCall)).to.equal(100n)
      send(subscriptions[1] as ReadCall, reading.event(200n, { stream: TARGET }))
      await received.until(({ events }) => events.length === 2)
      await received.stop()
      expect(received.items.map(shown)).to.deep.equal(['event 100', 'caught_up', 'interrupted', 'event 200'])
    })

    it('continues a long stretch without a wanted event where it was interrupted', async () => {
      begin = call => send(call, ...[200n, 300n, 400n].map(reading.checkpoint))
      const received = subscribe()
      await received.until(({ items }) => items.length === 2)
      lose(subscriptions[0] as ReadCall)
      await eventually(() => subscriptions.length === 2)
      await received.stop()
      expect(positionOf(subscriptions[1] as ReadCall)).to.equal(300n)
    })

    it('never goes back', async () => {
      begin = call =>
        send(
          call,
          reading.event(300n, { stream: TARGET }),
          ...[100n, 200n].map(reading.checkpoint),
          ...[400n, 500n].map(reading.checkpoint),
        )
      const received = subscribe()
      await received.until(({ items }) => items.length === 2)
      await received.stop()
      expect(received.items.map(shown)).to.deep.equal(['event 300', 'up to 400'])
    })
  })

  describe('that has caught up', () => {
    const endOf = async (checkpoint?: bigint): Promise<string[]> => {
      const checkpoints = checkpoint === undefined ? [] : [reading.checkpoint(checkpoint)]
      begin = call => send(call, reading.event(100n, { stream: TARGET }), ...checkpoints, reading.caughtUp())
      const received = subscribe()
      await received.until(caughtUp)
      await received.stop()
      return received.items.map(shown)
    }

    it('has reached the newest event of the log, if that is not a wanted one', async () => {
      newest = reading.event(200n, { stream: OTHER })
      expect(await endOf(200n)).to.deep.equal(['event 100', 'up to 200', 'caught_up'])
      expect(await endOf(250n)).to.deep.equal(['event 100', 'up to 200', 'caught_up'])
    })

    it('has reached a newest event of the store itself', async () => {
      newest = reading.event(200n, { stream: '$epoch-information' })
      expect(await endOf(200n)).to.deep.equal(['event 100', 'up to 200', 'caught_up'])
    })

    it('has not reached an event that was stored meanwhile', async () => {
      newest = reading.event(300n, { stream: OTHER })
      expect(await endOf(200n)).to.deep.equal(['event 100', 'caught_up'])
      expect(await endOf()).to.deep.equal(['event 100', 'caught_up'])
      newest = reading.event(200n, { stream: TARGET })
      expect(await endOf(200n)).to.deep.equal(['event 100', 'caught_up'])
    })
  })

  describe('that the store ends because of a reader that is too slow', () => {
    const ENDS = 8
    /** With pauses that grow the second half of them is ten times as long as the first. */
    const LONGER_MAX = 4

    it('resumes after its last event, without a gap and without an interruption', async () => {
      begin = call => {
        const next = (positionOf(call) ?? 0n) + 100n
        send(
          call,
          reading.event(next, { stream: TARGET }),
          reading.caughtUp(),
          reading.event(next + 100n, { stream: TARGET }),
        )
      }
      const received = subscribe()
      for (let ended = 1; ended <= ENDS; ended += 1) {
        await received.until(({ events }) => events.length === ended * 2)
        tooSlow(subscriptions.at(-1) as ReadCall)
      }
      await received.until(({ events }) => events.length === (ENDS + 1) * 2)
      await received.stop()
      const positions = received.events.map(({ position }) => position)
      expect(positions).to.deep.equal(Array.from({ length: (ENDS + 1) * 2 }, (_, n) => BigInt(n + 1) * 100n))
      expect(received.items.filter(({ kind }) => kind === 'interrupted')).to.deep.equal([])
    })

    it('resumes without a growing pause, also while nothing comes', async () => {
      await holdsInOneOf(async () => {
        const beganMs: number[] = []
        begin = call => {
          beganMs.push(performance.now())
          setImmediate(() => tooSlow(call))
        }
        const received = subscribe()
        await eventually(() => beganMs.length > ENDS)
        await received.stop()
        expect(received.items).to.deep.equal([])
        const [first = 0, middle = 0, last = 0] = [0, ENDS / 2, ENDS].map(index => beganMs[index])
        expect(last - middle).to.be.below(LONGER_MAX * (middle - first))
      })
    })

    it('resumes for every feed that shares it', async () => {
      begin = call => send(call, reading.caughtUp())
      const feeds = [subscribe(), subscribe()]
      await Promise.all(feeds.map(one => one.until(caughtUp)))
      let position = 100n
      const open = (): ReadCall[] => subscriptions.filter(({ cancelled }) => !cancelled)
      // Two of their own, and the shared one. They leave theirs when an event has come on both.
      await eventually(() => subscriptions.length === 3)
      await eventually(() => {
        position += 100n
        for (const call of open()) send(call, reading.event(position, { stream: TARGET }))
        return open().length === 1
      })
      for (const one of feeds) await one.until(({ events }) => events.at(-1)?.position === position)
      begin = call => send(call, reading.event(position + 100n, { stream: TARGET }), reading.caughtUp())
      for (const call of open()) tooSlow(call)
      for (const one of feeds) await one.until(({ events }) => events.at(-1)?.position === position + 100n)
      await Promise.all(feeds.map(one => one.stop()))
      expect(subscriptions).to.have.length(4)
      expect(positionOf(subscriptions[3] as ReadCall)).to.equal(position)
      for (const { items } of feeds) expect(items.map(({ kind }) => kind)).not.to.include('interrupted')
    })
  })
})
