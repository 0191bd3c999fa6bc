import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { type FactProducer, Unavailable } from '../../src/ports.ts'
import {
  CALLS,
  type BrokerFaultHarness,
  expectUnavailable,
  firstSeen,
  newTopic,
  numbered,
  upTo,
  valuesByKey,
} from './factBusFixtures.ts'
import { eventually } from '../support/eventually.ts'
import { rejectionOf } from '../support/rejection.ts'

/** The deadline of a call with the usual timeouts. */
const USUAL_DEADLINE_MS = 10_000

/** The contract of all fact buses when the broker fails. */
export const factBusFaults = (harness: () => BrokerFaultHarness): void => {
  let bus: FactProducer
  let topic: string

  beforeEach(async () => {
    bus = harness().open()
    const settings = newTopic()
    topic = settings.topic
    // The broker of the case before has just come back.
    await eventually(() =>
      bus.ensureTopics([settings]).then(
        () => true,
        (error: unknown) => {
          if (error instanceof Unavailable) return false
          throw error
        },
      ),
    )
  })
  afterEach(() => bus.close())

  it('stores acknowledged messages in order when the broker is killed meanwhile, and rejects the other calls', async () => {
    let [call, failures, callsSince] = [0, 0, 0]
    let restored = false
    const killAndRestore = async (): Promise<void> => {
      await delay(150)
      await harness().cut()
      await harness().restore()
      restored = true
    }
    const restoring = killAndRestore()
    // A failed batch is sent again, and the next one follows its acknowledgement, as the publisher does it.
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
    await restoring
    expect(failures, 'calls that met the fault').to.be.greaterThan(0)
    const values = valuesByKey(await harness().read(topic))
    expect(values.size).to.equal(5)
    for (const ofKey of values.values()) expect(firstSeen(ofKey)).to.deep.equal(upTo(call * 10))
  })

  it('reports no effect when the broker is down before the request, and publishes after it was restored', async () => {
    await harness().cut()
    const fresh = harness().open()
    try {
      expectUnavailable(await rejectionOf(fresh.publish(numbered(topic, 1, 1))), 'none')
      await harness().restore()
      await fresh.publish(numbered(topic, 1, 1))
    } finally {
      await fresh.close()
    }
    expect(valuesByKey(await harness().read(topic)).get('inv_0')).to.deep.equal(['0'])
  })

  it('reports an unknown effect when a request was sent without a response', async () => {
    await bus.publish(numbered(topic, 1, 1))
    harness().freeze()
    try {
      expectUnavailable(await rejectionOf(bus.publish(numbered(topic, 1, 1, 1))), 'unknown')
    } finally {
      harness().thaw()
    }
    await bus.publish(numbered(topic, 1, 1, 1))
    await bus.publish(numbered(topic, 1, 1, 2))
    const values = valuesByKey(await harness().read(topic)).get('inv_0') ?? []
    expect(firstSeen(values)).to.deep.equal(['0', '1', '2'])
  })

  it('fails the calls behind a failed one, so that they cannot overtake its retry', async () => {
    await bus.publish(numbered(topic, 1, 1))
    harness().freeze()
    const calls = [1, 2, 3].map(from => rejectionOf(bus.publish(numbered(topic, 1, 1, from))))
    const [first, ...behind] = await Promise.all(calls).finally(() => harness().thaw())
    expectUnavailable(first ?? new Error('There was no first call.'), 'unknown')
    for (const error of behind) expectUnavailable(error, 'none')
    for (const from of [1, 2, 3]) await bus.publish(numbered(topic, 1, 1, from))
    const values = valuesByKey(await harness().read(topic)).get('inv_0') ?? []
    expect(firstSeen(values)).to.deep.equal(upTo(4))
  })

  it('closes before the deadline of a call to which the broker does not respond', async () => {
    const usual = harness().openWithUsualTimeouts()
    await usual.publish(numbered(topic, 1, 1))
    harness().freeze()
    try {
      const pending = rejectionOf(usual.publish(numbered(topic, 1, 1, 1)))
      const beganMs = performance.now()
      await usual.close()
      expectUnavailable(await pending, 'unknown')
      expect(performance.now() - beganMs).to.be.lessThan(USUAL_DEADLINE_MS)
    } finally {
      harness().thaw()
    }
  })
}
