import { type FactMessage, FactTooLarge, type SubscriberBus } from '../../src/ports.ts'
import type { Machine } from './machine.ts'
import type { Network } from './network.ts'
import type { Random } from './random.ts'

/** The broker of a run. A request whose answer is lost may have stored all of its messages, or those of some keys. */
export type SimulatedBroker = {
  readonly open: (machine: Machine) => SubscriberBus
  /** In the order of their arrival. */
  readonly messages: (topic: string) => readonly FactMessage[]
  readonly topics: () => readonly string[]
  /** Messages of these keys are larger than the topic takes, until the set no longer has them. */
  readonly tooLarge: Set<string>
}

export type BrokerParts = { readonly random: Random; readonly network: Network }

const PUBLISH_DEADLINE_MS = 10_000
const PARTIAL_CHANCE = 0.15

export const createBroker = ({ random, network }: BrokerParts): SimulatedBroker => {
  const topics = new Map<string, FactMessage[]>()
  const tooLarge = new Set<string>()

  const store = (messages: readonly FactMessage[]): void => {
    const refused = messages.find(({ key }) => tooLarge.has(key))
    for (const message of messages) {
      if (message.key === refused?.key) continue
      const topic = topics.get(message.topic)
      if (topic === undefined) throw Object.assign(new Error('No such topic.'), { name: 'FactBusRefused' })
      topic.push(message)
    }
    if (refused) throw new FactTooLarge(refused)
  }

  const ask = <T>(machine: Machine, effect: () => T): Promise<T> =>
    network.request({ machine, server: 'fact bus', writes: true, deadlineMs: PUBLISH_DEADLINE_MS, effect })

  const publish = async (machine: Machine, messages: readonly FactMessage[]): Promise<void> => {
    if (messages.length === 0) return
    // Each partition is a request of its own: some may be stored before others are sent.
    const keys = [...new Set(messages.map(({ key }) => key))]
    const first = random.chance(PARTIAL_CHANCE) ? new Set(keys.filter(() => random.chance(0.5))) : new Set(keys)
    const [early, late] = [messages.filter(({ key }) => first.has(key)), messages.filter(({ key }) => !first.has(key))]
    await ask(machine, () => store(early))
    if (late.length > 0) await ask(machine, () => store(late))
  }

  return {
    open: machine => ({
      ensureTopics: wanted =>
        ask(machine, () => {
          for (const { topic } of wanted) if (!topics.has(topic)) topics.set(topic, [])
        }),
      publish: messages => publish(machine, messages),
      deleteTopics: names =>
        ask(machine, () => {
          for (const name of names) topics.delete(name)
        }),
      grantReading: () => ask(machine, () => 'granted' as const),
      revokeReading: () => ask(machine, () => undefined),
      close: () => Promise.resolve(),
    }),
    messages: topic => topics.get(topic) ?? [],
    topics: () => [...topics.keys()],
    tooLarge,
  }
}
