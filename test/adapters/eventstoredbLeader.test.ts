import { status } from '@grpc/grpc-js'
import { expect } from 'chai'
import { openConnection } from '../../src/adapters/eventstoredb/connection.ts'
import { append } from '../../src/adapters/eventstoredb/append.ts'
import { ResponseTimeout } from '../../src/adapters/eventstoredb/errors.ts'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { type EventStore, type FeedItem, Unavailable } from '../../src/ports.ts'
import { all, caughtUp, event, events, feed, idsOf, newCategory, newStream } from '../contracts/eventStoreFixtures.ts'
import { type TestNode, startTestNode } from '../embedded/eventStoreNode.ts'
import { eventually } from '../support/eventually.ts'
import { rejectionOf } from '../support/rejection.ts'
import {
  type AppendCall,
  type ReadCall,
  type ScriptedStore,
  isSubscription,
  reading,
  refusal,
  refuseAsFollower,
  sendEvents,
  startOlderStore,
  startScriptedStore,
  success,
} from './eventstoredbWire.ts'

const DEADLINE_MS = 5_000

const requiresLeader = (call: AppendCall | ReadCall): boolean => call.metadata.get('requires-leader')[0] === 'true'
const interruptions = (items: readonly FeedItem[]): number => items.filter(({ kind }) => kind === 'interrupted').length

describe('EventStoreDB adapter, in a cluster', () => {
  let leader: TestNode
  let node: ScriptedStore
  let direct: EventStore
  let store: EventStore

  const leaderPort = (): number => Number(new URL(leader.address).port)
  const openStore = (address: string): EventStore =>
    (store = openEventStore({ connectionString: address, appendDeadlineMs: DEADLINE_MS }))

  before(async () => {
    leader = await startTestNode()
    direct = openEventStore({ connectionString: leader.address })
  })
  beforeEach(async () => {
    node = await startScriptedStore()
  })
  afterEach(async () => {
    await store.close()
    node.stop()
  })
  after(async () => {
    await direct.close()
    await leader.stop()
  })

  /** The node answers from the past, and accepts appends, unless the caller requires the leader. */
  const follow = (): void => {
    const port = leaderPort()
    node.script.read = call => (requiresLeader(call) ? refuseAsFollower(call, port) : sendEvents(call, ['of the past']))
    node.script.append = (message, call) =>
      requiresLeader(call) ? refuseAsFollower(call, port) : call.write(success(message, 0n, 1n))
  }

  const givenStream = async (category?: string) => {
    const stream = newStream(category)
    const sent = events(3)
    await direct.append(stream, sent, 'no_stream')
    return { stream, ids: idsOf(sent) }
  }

  describe('that meets a follower', () => {
    beforeEach(follow)

    it('reads a stream from the leader', async () => {
      const { stream, ids } = await givenStream()
      expect(idsOf(await all(openStore(node.address).readStream(stream)))).to.deep.equal(ids)
      expect(idsOf(await all(store.readStream(stream)))).to.deep.equal(ids)
    })

    it('reads the head from the leader', async () => {
      await givenStream()
      expect(await openStore(node.address).head()).to.equal(await direct.head())
    })

    it('appends at the leader', async () => {
      const stream = newStream()
      const sent = [event()]
      const appended = await openStore(node.address).append(stream, sent, 'no_stream')
      expect(appended).to.deep.equal({ ok: true, revision: 0n, position: await direct.head() })
      expect(idsOf(await all(direct.readStream(stream)))).to.deep.equal(idsOf(sent))
    })

    it('subscribes at the leader', async () => {
      const category = newCategory()
      const { ids } = await givenStream(category)
      const received = feed(openStore(node.address), { after: 'start', categories: [category] })
      await received.until(caughtUp)
      await received.stop()
      expect(idsOf(received.events)).to.deep.equal(ids)
    })

    it('does not take the end of the follower for the end of the log', async () => {
      const category = newCategory()
      const { ids } = await givenStream(category)
      const { read } = node.script
      // A node subscribes without a read of its log when the position is at its end, and then does not ask for the leader.
      node.script.read = call => {
        if (!isSubscription(call)) return read(call)
        call.write(reading.confirmed())
        call.write(reading.caughtUp())
      }
      const received = feed(openStore(node.address), { after: 'start', categories: [category] })
      await received.until(caughtUp)
      await received.stop()
      expect(idsOf(received.events)).to.deep.equal(ids)
    })
  })

  describe('whose leader becomes a follower, and keeps its connections', () => {
    /** The node has answered as the leader, so that the connection has a session of its own for reads and appends. */
    const givenDemoted = async (): Promise<void> => {
      node.script.read = call => sendEvents(call, ['of its own'])
      node.script.append = (message, call) => call.write(success(message, 0n, 1n))
      openStore(node.address)
      for (let n = 0; n < 3; n += 1) {
        expect(await all(store.readStream('s-1'))).to.have.length(1)
        expect(await store.append(newStream(), [event()], 'no_stream')).to.deep.include({ position: 1n })
      }
      follow()
    }

    it('reads from the new leader', async () => {
      const { stream, ids } = await givenStream()
      await givenDemoted()
      expect(idsOf(await all(store.readStream(stream)))).to.deep.equal(ids)
      expect(await store.head()).to.equal(await direct.head())
    })

    it('appends at the new leader', async () => {
      const stream = newStream()
      await givenDemoted()
      expect(await store.append(stream, [event()], 'no_stream')).to.deep.include({ ok: true, revision: 0n })
      expect(await all(direct.readStream(stream))).to.have.length(1)
    })

    it('serves many reads and appends at once', async () => {
      const { stream, ids } = await givenStream()
      await givenDemoted()
      const reads = Array.from({ length: 20 }, () => all(store.readStream(stream)))
      const appends = Array.from({ length: 20 }, () => store.append(newStream(), [event()], 'no_stream'))
      for (const read of await Promise.all(reads)) expect(idsOf(read)).to.deep.equal(ids)
      for (const appended of await Promise.all(appends)) expect(appended).to.deep.include({ ok: true, revision: 0n })
    })
  })

  describe('whose nodes do not say who is the leader', () => {
    beforeEach(() => {
      node.script.isGossipSilent = true
      openStore(node.clusterAddress)
    })
    const expectTimeout = (failure: unknown): void => {
      expect(failure).to.be.instanceOf(Unavailable)
      expect((failure as Unavailable).cause).to.be.instanceOf(ResponseTimeout)
    }

    it('gives up reads of a stream and of the head after their own time limit', async () => {
      const [stream, head] = [rejectionOf(all(store.readStream(newStream()))), rejectionOf(store.head())]
      expectTimeout(await stream)
      expectTimeout(await head)
    })

    it('reports the interruption of a subscription, which begins once one is named', async () => {
      const category = newCategory()
      const { ids } = await givenStream(category)
      const received = feed(store, { after: 'start', categories: [category] })
      await received.until(({ items }) => interruptions(items) > 0)
      node.script.isGossipSilent = false
      node.script.leaderPort = leaderPort()
      await received.until(caughtUp)
      await received.stop()
      expect(idsOf(received.events)).to.deep.equal(ids)
      const [first] = received.items
      expect(first?.kind === 'interrupted' && first.error).to.be.instanceOf(ResponseTimeout)
    })
  })

  describe('that has no leader at first', () => {
    const expectUnavailable = (failure: unknown): void => {
      expect(failure).to.be.instanceOf(Unavailable).and.to.include({ dependency: 'event store', effect: 'none' })
    }

    it('appends once there is one, though its first call was an append', async () => {
      const stream = newStream()
      openStore(node.clusterAddress)
      for (let n = 0; n < 3; n += 1) expectUnavailable(await rejectionOf(store.append(stream, [event()], 'no_stream')))
      node.script.leaderPort = leaderPort()
      expect(await store.append(stream, [event()], 'no_stream')).to.deep.include({ ok: true, revision: 0n })
    })

    it('appends once there is one, though the connection was renewed meanwhile', async () => {
      const connection = openConnection(node.clusterAddress)
      const requested = () => ({ stream: newStream(), events: [event()], expected: 'no_stream' as const })
      node.script.leaderPort = leaderPort()
      expect(await append(connection, requested(), DEADLINE_MS)).to.deep.include({ ok: true })
      node.script.leaderPort = undefined
      connection.renew(connection.client)
      for (let n = 0; n < 3; n += 1) expectUnavailable(await rejectionOf(append(connection, requested(), DEADLINE_MS)))
      node.script.leaderPort = leaderPort()
      expect(await append(connection, requested(), DEADLINE_MS)).to.deep.include({ ok: true })
      await connection.close()
    })

    it('appends once there is one, also to servers without BatchAppend, whose client asks for their methods', async () => {
      const written = async () => ({ kind: 'written', revision: 0n, position: 733n }) as const
      const first = await startOlderStore(written)
      node.script.leaderPort = first.port
      openStore(node.clusterAddress)
      expect(await store.append(newStream(), [event()], 'no_stream')).to.deep.include({ ok: true })
      node.script.leaderPort = undefined
      first.stop()
      for (let n = 0; n < 3; n += 1)
        expect(await rejectionOf(store.append(newStream(), [event()], 'no_stream'))).to.be.instanceOf(Unavailable)
      const second = await startOlderStore(written)
      node.script.leaderPort = second.port
      await eventually(() => store.append(newStream(), [event()], 'no_stream').catch(() => undefined))
      second.stop()
    })

    it('reports its calls as without effect', async () => {
      const noLeader = 'No leader info available in response'
      node.script.read = call => call.emit('error', { code: status.UNKNOWN, details: noLeader })
      node.script.append = (message, call) =>
        call.write(refusal(message, { message: noLeader, detail: 'google.protobuf.Empty' }))
      openStore(node.address)
      expectUnavailable(await rejectionOf(store.head()))
      expectUnavailable(await rejectionOf(all(store.readStream(newStream()))))
      expectUnavailable(await rejectionOf(store.append(newStream(), [event()], 'no_stream')))
      const received = feed(store, { after: 'start' })
      await received.until(({ items }) => interruptions(items) > 0)
      await received.stop()
    })
  })
})
