import {
  BrokerAccessDenied,
  type FactBus,
  type FactMessage,
  FactTooLarge,
  type TopicSettings,
  Unavailable,
} from '../../src/ports.ts'
import type { Machine } from './machine.ts'
import type { Network } from './network.ts'
import type { Random } from './random.ts'

/** The Kafka broker of a run. A publication without an answer may have stored all of its messages, or those of some keys. */
export type SimulatedBroker = {
  readonly open: (machine: Machine) => FactBus
  /** The messages of a topic, in the order of their arrival. */
  readonly messages: (topic: string) => readonly FactMessage[]
  readonly topics: () => readonly string[]
  /** Messages with these keys are refused as too large. */
  readonly keysOfLargeFacts: Set<string>
}

export type BrokerDependencies = { readonly random: Random; readonly network: Network }

/** A client notices within this time that the connection, and the answer with it, is lost. */
const PUBLISH_DEADLINE_MS = 4_000
const SEPARATE_REQUESTS_CHANCE = 0.15

/** Throws if an existing topic has other settings. It is not changed, because its settings belong to the broker's operator. */
const refuseOtherSettings = (target: TopicSettings, existing: TopicSettings): void => {
  const names = { partitions: 'partitions', retentionMs: 'retention.ms' } as const
  const differences = (['partitions', 'retentionMs'] as const)
    .filter(name => target[name] !== existing[name])
    .map(name => `${target.topic} has ${names[name]} ${existing[name]}, wanted ${target[name]}`)
  if (differences.length > 0) throw new Error(differences.join('; '))
}

export const createBroker = ({ random, network }: BrokerDependencies): SimulatedBroker => {
  const topics = new Map<string, FactMessage[]>()
  const settings = new Map<string, TopicSettings>()
  const tooLarge = new Set<string>()

  const store = (messages: readonly FactMessage[]): void => {
    const refused = messages.find(({ key }) => tooLarge.has(key))
    for (const message of messages) {
      if (message.key === refused?.key) continue
      const topic = topics.get(message.topic)
      if (topic === undefined) throw new BrokerAccessDenied('No such topic.', undefined)
      topic.push(message)
    }
    if (refused) throw new FactTooLarge(refused)
  }

  const ensure = (target: TopicSettings): void => {
    const existing = settings.get(target.topic)
    if (existing !== undefined && topics.has(target.topic)) return refuseOtherSettings(target, existing)
    settings.set(target.topic, target)
    topics.set(target.topic, [])
  }

  const request = <T>(machine: Machine, effect: () => T): Promise<T> =>
    network.request({ machine, server: 'fact bus', writes: true, deadlineMs: PUBLISH_DEADLINE_MS, effect })

  const publish = async (machine: Machine, messages: readonly FactMessage[]): Promise<void> => {
    if (messages.length === 0) return
    // The messages of each partition are a request of their own, so some may be stored before others are sent.
    const keys = [...new Set(messages.map(({ key }) => key))]
    const first = random.chance(SEPARATE_REQUESTS_CHANCE)
      ? new Set(keys.filter(() => random.chance(0.5)))
      : new Set(keys)
    const [early, late] = [messages.filter(({ key }) => first.has(key)), messages.filter(({ key }) => !first.has(key))]
    await request(machine, () => store(early))
    if (late.length > 0) await request(machine, () => store(late))
  }

  /** Sends one request of a process at a time, as the adapter does it, so that concurrent calls keep their order. */
  const sequence = () => {
    let last: Promise<unknown> = Promise.resolve()
    return <T>(work: () => Promise<T>): Promise<T> => {
      const result = last.then(work, work)
      last = result.catch(() => undefined)
      return result
    }
  }

  const openFor = (machine: Machine): FactBus => {
    const inSequence = sequence()
    let isOpen = true
    const refused = (): Promise<never> =>
      Promise.reject(new Unavailable('fact bus', { effect: 'none', cause: new Error('It is closed.') }))
    const whileOpen = <T>(effect: () => T): Promise<T> => (isOpen ? request(machine, effect) : refused())
    return {
      ensureTopics: target =>
        whileOpen(() => {
          for (const one of target) ensure(one)
        }),
      publish: messages => (isOpen ? inSequence(() => publish(machine, messages)) : refused()),
      deleteTopics: names =>
        whileOpen(() => {
          for (const name of names) topics.delete(name)
        }),
      grantReading: () => whileOpen(() => 'granted' as const),
      revokeReading: () => whileOpen(() => undefined),
      close: () => {
        isOpen = false
        return inSequence(() => Promise.resolve())
      },
    }
  }

  return {
    open: openFor,
    messages: topic => topics.get(topic) ?? [],
    topics: () => [...topics.keys()],
    keysOfLargeFacts: tooLarge,
  }
}
