import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { type FactBus, type FactMessage, type TopicSettings, Unavailable } from '../../src/ports.ts'

/** What the suite needs to see of a topic, from beyond the port. */
export type Published = {
  readonly partition: number
  readonly offset: bigint
  readonly key: string
  readonly headers: Readonly<Record<string, string>>
  readonly value: string
}

export type FactBusStage = {
  open(): FactBus
  read(topic: string): Promise<readonly Published[]>
}

/** A broker of the test's own, to be disturbed: the port says nothing of such things. */
export type DisturbableStage = FactBusStage & {
  /** A bus with the usual timeouts; that of `open` gives up after a second or two. */
  openPatient(): FactBus
  /** As a power cut: returns when the broker is gone. */
  cut(): Promise<void>
  /** Starts it again at the same address on the same data. */
  restore(): Promise<void>
  /** It keeps its connections and answers nobody, until `thaw`. */
  freeze(): void
  thaw(): void
}

const RETENTION_MS = 604_800_000
const PARTITIONS = 12
const MANY = 10_000
const CALLS = 50

export const newTopic = (): TopicSettings => ({
  topic: `test.${randomUUID()}`,
  partitions: PARTITIONS,
  retentionMs: RETENTION_MS,
})

export const fact = (topic: string, key: string, value: string, headers: Record<string, string> = {}): FactMessage => ({
  topic,
  key,
  headers,
  value,
})

/** `count` messages over `keys` keys; the value is the number within the key, from `from` on. */
export const numbered = (topic: string, keys: number, count: number, from = 0): FactMessage[] =>
  Array.from({ length: count }, (_, index) =>
    fact(topic, `inv_${index % keys}`, String(from + Math.floor(index / keys)), { ce_id: `${from}-${index}` }),
  )

export const rejectionOf = async (attempt: Promise<unknown>): Promise<Error> => {
  const outcome = await attempt.then(
    () => 'it succeeded',
    (error: unknown) => error,
  )
  if (outcome instanceof Error) return outcome
  throw new Error(`A rejection was expected, but ${String(outcome)}.`)
}

export const expectUnavailable = (error: Error, effect: Unavailable['effect']): void => {
  expect(error).to.be.instanceOf(Unavailable)
  expect(error).to.include({ part: 'fact bus', effect })
}

/** Per key, in the order of the topic. A key that is spread over partitions has no order, and fails here. */
export const valuesByKey = (messages: readonly Published[]): Map<string, string[]> => {
  for (const [key, ofKey] of Map.groupBy(messages, message => message.key)) {
    expect(new Set(ofKey.map(message => message.partition)).size, `partitions of ${key}`).to.equal(1)
  }
  const ordered = [...messages].sort((a, b) => Number(a.offset - b.offset))
  return new Map(
    [...Map.groupBy(ordered, message => message.key)].map(([key, ofKey]) => [key, ofKey.map(({ value }) => value)]),
  )
}

/** Duplicates of an at-least-once delivery taken out: where each value was seen first. */
const firstSeen = (values: readonly string[]): string[] => [...new Set(values)]

const upTo = (count: number): string[] => Array.from({ length: count }, (_, index) => String(index))

/** What every fact bus does while its broker is well. `createsTopics`: false where the broker cannot. */
export const factBusContract = (stage: () => FactBusStage, createsTopics: boolean): void => {
  let bus: FactBus
  let topic: string

  beforeEach(async () => {
    bus = stage().open()
    const settings = newTopic()
    topic = settings.topic
    if (createsTopics) await bus.ensureTopics([settings])
  })
  afterEach(() => bus.close())

  it('keeps the order of each key, over interleaved keys and several calls', async () => {
    await bus.publish(numbered(topic, 7, 70))
    await bus.publish(numbered(topic, 7, 70, 10))
    const values = valuesByKey(await stage().read(topic))
    expect(values.size).to.equal(7)
    for (const ofKey of values.values()) expect(ofKey).to.deep.equal(upTo(20))
  })

  it('carries key, headers and value to the byte', async () => {
    const headers = { ce_id: randomUUID(), empty: '', 'content-type': 'application/json', näme: 'ünï ✓ 𝄞 "quoted"' }
    const value = `{"a":"\\u0000 \\ud83d","b":"𝄞 ✓ ${'é'.repeat(5_000)}"}`
    await bus.publish([fact(topic, 'inv_ключ', value, headers), fact(topic, 'inv_2', '')])
    const [first, second] = [...(await stage().read(topic))].sort((a, b) => b.value.length - a.value.length)
    expect(first).to.deep.include({ key: 'inv_ключ', value, headers })
    expect(second).to.deep.include({ key: 'inv_2', value: '', headers: {} })
  })

  it('publishes ten thousand messages of one call, each once', async () => {
    await bus.publish(numbered(topic, 100, MANY))
    const read = await stage().read(topic)
    expect(read).to.have.length(MANY)
    for (const ofKey of valuesByKey(read).values()) expect(ofKey).to.deep.equal(upTo(MANY / 100))
  })

  it('publishes more than one request holds, in order', async () => {
    const megabytes = Array.from({ length: 30 }, (_, index) => fact(topic, 'inv_1', `${index} ${'x'.repeat(200_000)}`))
    await bus.publish(megabytes)
    const values = valuesByKey(await stage().read(topic)).get('inv_1')
    expect(values?.map(value => value.split(' ')[0])).to.deep.equal(upTo(30))
  })

  it('takes an empty call for done', async () => {
    await bus.publish([])
    expect(await stage().read(topic)).to.deep.equal([])
  })

  it('keeps concurrent calls in the order in which they were made', async () => {
    await Promise.all(Array.from({ length: CALLS }, (_, call) => bus.publish(numbered(topic, 3, 30, call * 10))))
    for (const ofKey of valuesByKey(await stage().read(topic)).values()) {
      expect(ofKey).to.deep.equal(upTo(CALLS * 10))
    }
  })

  it('delivers, when it is closed while publishing, all that a call had promised, and takes no more', async () => {
    const calls = Array.from({ length: CALLS }, (_, call) => bus.publish(numbered(topic, 3, 30, call * 10)))
    const outcomes = Promise.allSettled(calls)
    await bus.close()
    const kept = (await outcomes).filter(({ status }) => status === 'fulfilled').length
    expectUnavailable(await rejectionOf(bus.publish(numbered(topic, 1, 1))), 'none')
    const seen = [...valuesByKey(await stage().read(topic)).values()]
    expect(kept).to.be.greaterThan(0)
    for (const ofKey of seen) expect(ofKey.slice(0, kept * 10)).to.deep.equal(upTo(kept * 10))
  })

  if (createsTopics) {
    it('finds topics again that it made', async () => {
      const other = newTopic()
      await bus.ensureTopics([other])
      await bus.publish(numbered(other.topic, 1, 1))
      await bus.ensureTopics([other, { ...newTopic() }])
      expect(await stage().read(other.topic)).to.have.length(1)
    })

    it('lets two processes make the same topics at once', async () => {
      const wanted = [newTopic(), newTopic()]
      const second = stage().open()
      await Promise.all([bus.ensureTopics(wanted), second.ensureTopics(wanted)])
      await second.close()
      for (const { topic: name } of wanted) await bus.publish(numbered(name, 12, 12))
    })

    it('names both values when a topic has other settings', async () => {
      const wrong = { topic, partitions: 3, retentionMs: 1_000 }
      const { message } = await rejectionOf(bus.ensureTopics([newTopic(), wrong]))
      expect(message).to.contain(`${topic} has partitions 12, wanted 3`)
      expect(message).to.contain(`${topic} has retention.ms ${RETENTION_MS}, wanted 1000`)
    })
  }
}

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
      expect(performance.now() - since).to.be.lessThan(7_000)
      expectUnavailable(await pending, 'unknown')
    } finally {
      stage().thaw()
    }
  })
}
