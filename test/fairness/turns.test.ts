import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect } from 'chai'
import { type Account, probeAccount, strangerAccount } from '../../src/fairness/account.ts'
import { type EndTurn, type TurnLimits, TurnRefused, Turns } from '../../src/fairness/turns.ts'
import { createManualClock } from '../support/manualClock.ts'
import { rejectionOf } from '../support/rejection.ts'

const LIMITS: TurnLimits = {
  turns: () => 4,
  places: 20,
  turnMaxMs: 250,
  shareAlone: 1,
  shareWhenContended: 0.5,
  onePerLoopIteration: false,
  timeShareWhenContended: 1,
  waitMaxMs: 5_000,
  waitingMax: { caller: 10, tenant: 20, all: 30 },
}

const of = (tenant: string, caller = 'only'): Account => ({ tenant, caller })

const start = (limits: Partial<TurnLimits> = {}) => {
  const clock = createManualClock()
  const turns = new Turns({ ...LIMITS, ...limits }, clock)
  /** The names of those that have begun, in this order. */
  const begun: string[] = []
  const ends: EndTurn[] = []
  const refused: string[] = []
  const enter = (account: Account, name = `${account.tenant}/${account.caller}`, signal?: AbortSignal): void => {
    turns.enter(account, signal).then(
      end => {
        begun.push(name)
        ends.push(end)
      },
      (error: unknown) => refused.push(`${name}: ${error instanceof TurnRefused ? error.reason : String(error)}`),
    )
  }
  /** Ends the oldest work, and waits until the next has begun. */
  const endOne = async (): Promise<void> => {
    ends.shift()?.()
    await nextTurn()
  }
  return { clock, turns, begun, ends, refused, enter, endOne }
}

const times = (count: number, work: (n: number) => void): void => {
  for (let n = 0; n < count; n++) work(n)
}

describe('turns', () => {
  it('begin at once while there are any, and when the machine is idle for a caller with hundreds of requests', async () => {
    const { enter, begun, endOne, clock } = start({ waitingMax: { caller: 500, tenant: 500, all: 500 } })
    times(300, () => enter(of('one')))
    await nextTurn()
    expect(begun).to.have.length(4)
    for (let n = 0; n < 300; n++) await endOne()
    expect(begun).to.have.length(300)
    expect(clock.monotonicMs(), 'time that passed').to.equal(0)
  })

  it('alternate between tenants, however many callers one has', async () => {
    const { enter, begun, endOne } = start({ turns: () => 1 })
    times(10, n => enter(of('many', `caller ${n}`)))
    times(3, () => enter(of('one')))
    await nextTurn()
    for (let n = 0; n < 7; n++) await endOne()
    expect(begun.map(name => name.split('/')[0])).to.deep.equal([
      ...['many', 'one', 'many', 'one', 'many', 'one', 'many', 'many'],
    ])
  })

  it('alternate between the callers of a tenant', async () => {
    const { enter, begun, endOne } = start({ turns: () => 1 })
    times(5, () => enter(of('one', 'busy')))
    enter(of('one', 'quiet'))
    for (let n = 0; n < 3; n++) await endOne()
    expect(begun.indexOf('one/quiet')).to.be.within(1, 2)
  })

  it('come less often to a tenant whose work takes longer', async () => {
    const { enter, begun, ends, clock } = start({ turns: () => 1, turnMaxMs: Infinity })
    times(10, () => {
      enter(of('slow'))
      enter(of('quick'))
    })
    await nextTurn()
    for (let n = 0; n < 8; n++) {
      await clock.pass(begun.at(-1) === 'slow/only' ? 100 : 10)
      ends.shift()?.()
      await nextTurn()
    }
    expect(begun.filter(name => name === 'slow/only')).to.have.length(1)
  })

  it('count fourfold for strangers, who are one tenant together', async () => {
    const { enter, begun, ends, clock } = start({ turns: () => 1, turnMaxMs: Infinity })
    times(10, n => {
      enter(strangerAccount(`192.0.2.${n}`), 'stranger')
      enter(of('one'), 'one')
    })
    for (let n = 0; n < 10; n++) {
      await clock.pass(10)
      ends.shift()?.()
      await nextTurn()
    }
    expect(begun.filter(name => name === 'stranger').length).to.be.within(2, 3)
  })

  it('are all for a tenant alone, and half of them while another one was seen lately', async () => {
    const { enter, begun, ends, clock } = start()
    times(10, () => enter(of('one')))
    await nextTurn()
    expect(begun).to.have.length(4)
    enter(of('two'))
    for (let n = 0; n < 3; n++) {
      ends.shift()?.()
      await nextTurn()
    }
    expect(begun.slice(4), 'two of one still hold their half').to.deep.equal(['two/only', 'one/only'])
    await clock.pass(2_000)
    expect(begun.length, 'two was not seen for two seconds').to.be.greaterThan(6)
  })

  it('begin one in each turn of the event loop beside another tenant, whose work is next', async () => {
    const { enter, begun, ends } = start({ turns: () => 8, onePerLoopIteration: true })
    enter(of('quiet'))
    await nextTurn()
    times(10, () => enter(of('busy')))
    await Promise.resolve()
    enter(of('quiet'))
    // Work that ends at once makes room for more, but not in the same turn of the loop.
    const beganInTurn: number[] = []
    for (let turn = 0; turn < 4; turn++) {
      const before = begun.length
      for (const end of ends.splice(0)) end()
      await nextTurn()
      beganInTurn.push(begun.length - before)
    }
    expect(beganInTurn).to.deep.equal([1, 1, 1, 1])
    expect(begun.slice(0, 3)).to.deep.equal(['quiet/only', 'busy/only', 'quiet/only'])
  })

  it('begin all at once for a tenant alone', async () => {
    const { enter, begun } = start({ turns: () => 8, onePerLoopIteration: true })
    times(10, () => enter(of('one')))
    await Promise.resolve()
    expect(begun).to.have.length(8)
  })

  it('take the word of an account that its tenant is not alone', async () => {
    const { enter, begun } = start()
    times(4, n => enter({ ...of('one'), isAlone: () => n === 0 }))
    await nextTurn()
    expect(begun).to.have.length(2)
  })

  it('are lost by the caller of the tenant that has the most waiting, when the tenant has too many', async () => {
    const { enter, refused, begun, endOne } = start({ turns: () => 1 })
    times(11, () => enter(probeAccount('192.0.2.1'), 'flood'))
    times(10, () => enter(probeAccount('192.0.2.2'), 'flood'))
    enter(probeAccount('192.0.2.3'), 'honest')
    await nextTurn()
    expect(refused).to.deep.equal(['flood: tenant'])
    for (let n = 0; n < 3; n++) await endOne()
    expect(begun).to.include('honest')
  })

  it('end after a quarter of a second for work that waits for something else, which keeps its place', async () => {
    const { enter, begun, clock, refused } = start({ places: 12 })
    times(10, () => enter(of('hanging')))
    await nextTurn()
    expect(begun).to.have.length(4)
    await clock.pass(275)
    expect(begun, 'half of the places').to.have.length(6)
    enter(of('another'))
    await nextTurn()
    expect(begun.at(-1)).to.equal('another/only')
    await clock.pass(5_000)
    expect(refused).to.deep.equal(['too_late', 'too_late', 'too_late', 'too_late'].map(why => `hanging/only: ${why}`))
  })

  it('are refused to the caller, then to the tenant, that has too many waiting', async () => {
    const { turns, enter } = start({ turns: () => 1, waitingMax: { caller: 10, tenant: 20, all: 40 } })
    times(11, () => enter(of('one')))
    expect(await rejectionOf(turns.enter(of('one')))).to.include({ reason: 'caller' })
    times(20, n => enter(of('two', `caller-${n}`)))
    expect(await rejectionOf(turns.enter(of('two')))).to.include({ reason: 'tenant' })
  })

  it('are taken from the longest queue when too many wait in all', async () => {
    const { turns, enter, refused } = start({ turns: () => 1 })
    times(11, () => enter(of('one')))
    times(10, () => enter(of('one', 'second')))
    times(10, () => enter(of('two')))
    await nextTurn()
    expect(refused).to.deep.equal([])
    enter(of('three'))
    await nextTurn()
    expect(refused).to.deep.equal(['one/only: too_many'])
    expect(turns.waiting).to.equal(30)
  })

  it('leave no trace of a waiter that is gone, and none is given to it', async () => {
    const { turns, enter, refused, begun, endOne } = start({ turns: () => 1 })
    const gone = new AbortController()
    enter(of('one'))
    enter(of('two'), 'gone', gone.signal)
    enter(of('three'))
    gone.abort()
    await nextTurn()
    expect([refused, turns.waiting]).to.deep.equal([['gone: gone'], 1])
    await endOne()
    await endOne()
    expect(begun).to.deep.equal(['one/only', 'three/only'])
  })

  it('give a tenant no credit for its pause', async () => {
    const { enter, begun, endOne } = start({ turns: () => 1, waitingMax: { caller: 99, tenant: 99, all: 200 } })
    times(60, () => enter(of('one')))
    for (let n = 0; n < 30; n++) await endOne()
    times(20, () => enter(of('two')))
    begun.length = 0
    for (let n = 0; n < 10; n++) await endOne()
    expect(begun.filter(name => name === 'one/only')).to.have.length(5)
  })

  it('end once, however often they are ended', async () => {
    const { turns, enter, begun, ends } = start({ turns: () => 1 })
    times(3, () => enter(of('one')))
    await nextTurn()
    const [end] = ends
    times(3, () => end?.())
    await nextTurn()
    expect([begun.length, turns.waiting]).to.deep.equal([2, 1])
  })
})
