import { eventStoreContract } from '../contracts/eventStore.ts'
import { factBusContract } from '../contracts/factBus.ts'
import { factBusRightsContract } from '../contracts/factBusRights.ts'
import { createLog } from './eventStore.ts'
import { createBroker } from './factBus.ts'
import { createMachine } from './machine.ts'
import { createNetwork } from './network.ts'
import { createRandom } from './random.ts'
import { createTimeline, type Timeline } from './timeline.ts'

// The simulated servers fulfil the same contracts as the adapters of the real servers.

const STEP_MS = 20

/** Lets virtual time pass until the returned function is called. */
const letPass = (timeline: Timeline): (() => Promise<void>) => {
  let isOver = false
  const passing = (async () => {
    while (!isOver) await timeline.advance(timeline.nowMs() + STEP_MS)
  })()
  return async () => {
    isOver = true
    await passing
  }
}

eventStoreContract('the log of the simulation', { restart: false }, () => {
  const random = createRandom(1)
  const timeline = createTimeline(random.fork('timeline'))
  const network = createNetwork({ timeline, random: random.fork('network') })
  const log = createLog({ timeline, random: random.fork('log'), network, epochMs: Date.now() })
  let opened = 0
  const open = () => log.open(createMachine(`client-${(opened += 1)}`, { timeline, random: random.fork('client') }))
  return Promise.resolve({ open, stop: letPass(timeline) })
})

describe('the fact bus contract, on the broker of the simulation', () => {
  const random = createRandom(2)
  const timeline = createTimeline(random.fork('timeline'))
  const network = createNetwork({ timeline, random: random.fork('network') })
  const broker = createBroker({ random: random.fork('broker'), network })
  const machine = createMachine('client', { timeline, random: random.fork('client') })
  let stop: () => Promise<void>
  before(() => {
    stop = letPass(timeline)
  })
  after(() => stop())

  const read = (topic: string) =>
    Promise.resolve(
      broker.messages(topic).map(({ key, headers, value }, index) => ({
        partition: 0,
        offset: BigInt(index),
        key,
        headers,
        value,
      })),
    )
  factBusContract(() => ({ open: () => broker.open(machine), read }), true)
  factBusRightsContract(
    () => ({ open: () => broker.open(machine), topics: () => Promise.resolve(broker.topics()) }),
    'granted',
  )
})
