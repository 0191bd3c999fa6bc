import { expect } from 'chai'
import { Unavailable } from '../../src/ports.ts'
import { createMachine } from './machine.ts'
import { createNetwork } from './network.ts'
import { createRandom } from './random.ts'
import { createTimeline } from './timeline.ts'

describe('the simulated network', () => {
  it('ignores an error that arrives after the deadline', async () => {
    const random = createRandom(1)
    const timeline = createTimeline(random.fork('timeline'))
    const network = createNetwork({ timeline, random: random.fork('network') })
    const machine = createMachine('client', { timeline, random: random.fork('client') })
    network.setCondition('database', 'slow')
    const unhandled: unknown[] = []
    const listener = (error: unknown): void => void unhandled.push(error)
    process.prependListener('unhandledRejection', listener)
    const answer = network.request({
      machine,
      server: 'database',
      writes: false,
      deadlineMs: 0.001,
      effect: () => Promise.reject(new Error('The server refuses it.')),
    })
    const rejected = answer.catch((error: unknown) => error)
    await timeline.advance(100_000)
    process.off('unhandledRejection', listener)
    expect(await rejected).to.be.instanceOf(Unavailable)
    expect(unhandled).to.deep.equal([])
  })
})
