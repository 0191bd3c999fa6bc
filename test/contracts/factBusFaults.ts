import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { type FactBus, Unavailable } from '../../src/ports.ts'
import {
  CALLS,
  type DisturbableStage,
  expectUnavailable,
  firstSeen,
  newTopic,
  numbered,
  rejectionOf,
  upTo,
  valuesByKey,
} from './factBusKit.ts'

/** What a fact bus does when its broker fails. */
export const factBusFaults = (stage: () => DisturbableStage): void => {
  let bus: FactBus
  let topic: string

  beforeEach(async () => {
    bus = stage().open()
    const settings = newTopic()
    topic = settings.topic
    await bus.ensureTopics([settings])
  })
  afterEach(() => bus.close())

  it('survives a cut in the middle: what was acknowledged is there, in order, and the rest is told', async () => {
    let [call, failures, callsSince] = [0, 0, 0]
    let restored = false
    const disturb = async (): Promise<void> => {
      await delay(150)
      await stage().cut()
      await stage().restore()
      restored = true
    }
    const disturbance = disturb()
    // As the publisher does it: the checkpoint moves after the acknowledgement, and a failed batch goes again.
    while (callsSince < CALLS) {
      const error = await bus.publish(numbered(topic, 5, 50, call * 10)).catch((e: unknown) => e)
      if (error === undefined) {
        call += 1
        if (restored) callsSince += 1
      } else {
        expect(error).to.be.instanceOf(Unavailable)
        failures += 1
      }
    }
    await disturbance
    expect(failures, 'the cut was felt').to.be.greaterThan(0)
    const values = valuesByKey(await stage().read(topic))
    expect(values.size).to.equal(5)
    for (const ofKey of values.values()) expect(firstSeen(ofKey)).to.deep.equal(upTo(call * 10))
  })

  it('says "none" when the broker is down and nothing can have been sent, and works again when it is back', async () => {
    await stage().cut()
    const fresh = stage().open()
    try {
      expectUnavailable(await rejectionOf(fresh.publish(numbered(topic, 1, 1))), 'none')
      await stage().restore()
      await fresh.publish(numbered(topic, 1, 1))
    } finally {
      await fresh.close()
    }
    expect(valuesByKey(await stage().read(topic)).get('inv_0')).to.deep.equal(['0'])
  })

  it('says "unknown" when a request was sent and never answered', async () => {
    await bus.publish(numbered(topic, 1, 1))
    stage().freeze()
    try {
      expectUnavailable(await rejectionOf(bus.publish(numbered(topic, 1, 1, 1))), 'unknown')
    } finally {
      stage().thaw()
    }
    await bus.publish(numbered(topic, 1, 1, 1))
    await bus.publish(numbered(topic, 1, 1, 2))
    const values = valuesByKey(await stage().read(topic)).get('inv_0') ?? []
    expect(firstSeen(values)).to.deep.equal(['0', '1', '2'])
  })

  it('fails the calls that wait behind a failed one, so that they cannot overtake what is sent again', async () => {
    await bus.publish(numbered(topic, 1, 1))
    stage().freeze()
    const calls = [1, 2, 3].map(from => rejectionOf(bus.publish(numbered(topic, 1, 1, from))))
    const [first, ...behind] = await Promise.all(calls).finally(() => stage().thaw())
    expectUnavailable(first ?? new Error('There was no first call.'), 'unknown')
    for (const error of behind) expectUnavailable(error, 'none')
    for (const from of [1, 2, 3]) await bus.publish(numbered(topic, 1, 1, from))
    const values = valuesByKey(await stage().read(topic)).get('inv_0') ?? []
    expect(firstSeen(values)).to.deep.equal(upTo(4))
  })

  it('closes in time although the broker answers nobody', async () => {
    const patient = stage().openPatient()
    await patient.publish(numbered(topic, 1, 1))
    stage().freeze()
    try {
      const pending = rejectionOf(patient.publish(numbered(topic, 1, 1, 1)))
      const since = performance.now()
      await patient.close()
      expectUnavailable(await pending, 'unknown')
      expect(performance.now() - since).to.be.lessThan(7_000)
    } finally {
      stage().thaw()
    }
  })
}
