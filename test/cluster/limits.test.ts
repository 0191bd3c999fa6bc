import { setImmediate as turn } from 'node:timers/promises'
import { expect } from 'chai'
import { type Channel, createChannel, type ChannelMessage } from '../../src/childProcesses/channel.ts'
import { createChildLimits } from '../../src/cluster/childLimits.ts'
import { createSharedLimits, type LimitOperations } from '../../src/cluster/sharedLimits.ts'

/** 100 a second. */
const LIMIT = { requests: 6_000, windowSeconds: 60 }

/** A primary process with its children, connected by channels in memory. */
const openPrimary = () => {
  const shared = createSharedLimits()
  const openChild = () => {
    const { operations, releaseAll } = shared.openFor()
    const failures: unknown[] = []
    const asJson = (message: ChannelMessage): ChannelMessage => JSON.parse(JSON.stringify(message))
    let isCut = false
    const atPrimary = createChannel(message => atChild.receive(asJson(message)), operations)
    const atChild: Channel<LimitOperations> = createChannel(
      message => (isCut ? undefined : atPrimary.receive(asJson(message))),
      {},
    )
    const limits = createChildLimits(atChild, error => failures.push(error))
    return { ...limits, failures, end: releaseAll, cut: () => void (isCut = true) }
  }
  return { openChild }
}

/** The messages of one exchange have arrived. */
const exchanged = async (): Promise<void> => {
  for (let n = 0; n < 4; n++) await turn()
}

describe('the limits of several processes', () => {
  it('count each request once, and tell each its own number', async () => {
    const { openChild } = openPrimary()
    const children = [openChild(), openChild(), openChild()]
    const counted = await Promise.all(
      Array.from({ length: 100 }, () => children.map(({ counter }) => counter.count('caller', LIMIT))).flat(),
    )
    const numbers = counted.map(({ used }) => used).toSorted((a, b) => a - b)
    expect(numbers).to.deep.equal(Array.from({ length: 300 }, (_, n) => n + 1))
  })

  it('give out the slots of a caller once, and again when they are released or their process has ended', async () => {
    const { openChild } = openPrimary()
    const [one, two] = [openChild(), openChild()]
    const taken = await Promise.all(Array.from({ length: 30 }, (_, n) => (n % 2 ? one : two).slots.take('caller', 20)))
    const releases = taken.filter(release => release !== undefined)
    expect(releases).to.have.lengthOf(20)
    for (const release of releases.slice(0, 3)) {
      release()
      // A slot is released once, however often its release is called.
      release()
    }
    await exchanged()
    const again = await Promise.all(Array.from({ length: 5 }, () => two.slots.take('caller', 20)))
    expect(again.filter(release => release !== undefined)).to.have.lengthOf(3)
    one.end()
    expect(await two.slots.take('caller', 20)).to.not.equal(undefined)
  })

  it('take no slot for a process that ended while it asked', async () => {
    const { openChild } = openPrimary()
    const [one, two] = [openChild(), openChild()]
    const requested = one.slots.take('caller', 1)
    one.end()
    await requested
    expect(await two.slots.take('caller', 1)).to.not.equal(undefined)
  })

  it('let a process count alone while the primary does not answer', async () => {
    const { openChild } = openPrimary()
    const child = openChild()
    child.cut()
    const counted = await Promise.all([child.counter.count('caller', LIMIT), child.counter.count('caller', LIMIT)])
    expect(counted.map(({ used }) => used)).to.deep.equal([1, 2])
    const slots = await Promise.all([child.slots.take('caller', 1), child.slots.take('caller', 1)])
    expect(slots.filter(release => release !== undefined)).to.have.lengthOf(1)
    expect(child.failures).to.have.lengthOf(4)
  })
})

describe('a channel between processes', () => {
  type Remote = { readonly double: (n: number) => Promise<number> }
  const open = (double: (n: number) => Promise<number>) => {
    const parcels: ChannelMessage[] = []
    const send = (message: ChannelMessage): void => {
      parcels.push(message)
      server.receive(message)
    }
    const client = createChannel<Remote>(send, {})
    const server = createChannel(message => client.receive(message), { double })
    return { client, parcels }
  }

  it('sends the calls of one turn of the event loop together', async () => {
    const { client, parcels } = open(async n => 2 * n)
    expect(await Promise.all([1, 2, 3].map(n => client.call('double', n)))).to.deep.equal([2, 4, 6])
    expect(parcels).to.have.lengthOf(1)
  })

  it('answers a call that takes long, although others are answered meanwhile', async () => {
    const slow = Promise.withResolvers<number>()
    const { client } = open(n => (n === 1 ? slow.promise : Promise.resolve(2 * n)))
    const first = client.call('double', 1)
    expect(await client.call('double', 2)).to.equal(4)
    slow.resolve(7)
    expect(await Promise.race([first, exchanged().then(() => 'no answer')])).to.equal(7)
  })

  it('rejects a call that failed at the other side, and every call once that side has ended', async () => {
    const { client } = open(async () => Promise.reject(new Error('planted')))
    const messages: string[] = []
    const note = (error: Error): void => void messages.push(error.message)
    await client.call('double', 1).catch(note)
    const { client: other } = open(() => new Promise(() => undefined))
    const pending = other.call('double', 1).catch(note)
    await exchanged()
    other.close()
    await pending
    await other.call('double', 1).catch(note)
    expect(messages).to.deep.equal(['planted', 'The other process has ended.', 'The other process has ended.'])
  })
})
