import { expect } from 'chai'
import { createTimer, WAIT_MAX_MS } from '../../src/feeds/timer.ts'
import { createTimedWorld, type TimedWorld } from '../commands/timedWorld.ts'

describe('the timer of a loop', () => {
  let world: TimedWorld
  let stop: AbortController

  beforeEach(() => {
    world = createTimedWorld()
    stop = new AbortController()
  })

  it('ends the wait at the earliest time that was set before it or during it', async () => {
    const timer = createTimer(world)
    timer.setAt(9_000)
    timer.setAt(7_000)
    timer.setAt(8_000)
    const waiting = timer.wait(stop.signal, 0)
    await world.run(world.sleep(1_000))
    timer.setAt(3_000)
    timer.setAt(5_000)
    expect(await world.run(waiting)).to.equal(2_000)
  })

  it('ends no wait before the least time, however early the work is due', async () => {
    const timer = createTimer(world)
    timer.setAt(0)
    expect(await world.run(timer.wait(stop.signal, 250))).to.equal(250)
  })

  it('ends a wait for which no time is set after thirty seconds, also after an earlier wait that had one', async () => {
    const timer = createTimer(world)
    timer.setAt(1_000)
    expect(await world.run(timer.wait(stop.signal, 250))).to.equal(1_000)
    expect(await world.run(timer.wait(stop.signal, 250))).to.equal(WAIT_MAX_MS)
  })

  it('ends a wait at once when the signal aborts', async () => {
    const timer = createTimer(world)
    const waiting = timer.wait(stop.signal, 0)
    stop.abort()
    expect(await world.run(waiting)).to.equal(0)
    expect(await world.run(timer.wait(stop.signal, 250))).to.equal(0)
  })
})
