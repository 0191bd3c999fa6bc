import { type FactBus, type FactMessage, FactTooLarge, type TopicSettings, Unavailable } from '../../src/ports.ts'
import type { Machine } from './machine.ts'
import type { Network } from './network.ts'
import type { Random } from './random.ts'

/** The broker of a run. A request whose answer is lost may have stored all of its messages, or those of some keys. */
export type SimulatedBroker = {
  readonly open: (machine: Machine) => FactBus
  /** In the order of their arrival. */
  readonly messages: (topic: string) => readonly FactMessage[]
  readonly topics: () => readonly string[]
  /** Messages of these keys are larger than the topic takes, until the set no longer has them. */
  readonly tooLarge: Set<string>
}

export type BrokerDependencies = { readonly random: Random; readonly network: Network }

/** An answer is lost with its connection, which the client notices within seconds. */
const PUBLISH_DEADLINE_MS = 4_000
const PARTIAL_CHANCE = 0.15

/** A topic that exists is left as it is: its settings are for the operator of the broker. */
const compare = (wanted: TopicSettings, there: TopicSettings): void => {
  const names = { partitions: 'partitions', retentionMs: 'retention.ms' } as const
  const differences = (['partitions', 'retentionMs'] as const)
    .filter(name => wanted[name] !== there[name])
    .map(name => `${wanted.topic} has ${names[name]} ${there[name]}, wanted ${wanted[name]}`)
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
      if (topic === undefined) throw Object.assign(new Error('No such topic.'), { name: 'FactBusRefused' })
      topic.push(message)
    }
    if (refused) throw new FactTooLarge(refused)
  }

  const ensure = (wanted: TopicSettings): void => {
    const there = settings.get(wanted.topic)
    if (there !== undefined && topics.has(wanted.topic)) return compare(wanted, there)
    settings.set(wanted.topic, wanted)
    topics.set(wanted.topic, [])
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

  /** One request at a time over all calls of a process, as the adapter sends them: concurrent calls keep their order. */
  const inOrder = () => {
    let last: Promise<unknown> = Promise.resolve()
    return <T>(work: () => Promise<T>): Promise<T> => {
      const mine = last.then(work, work)
      last = mine.catch(() => undefined)
      return mine
    }
  }

  const openFor = (machine: Machine): FactBus => {
    const inTurn = inOrder()
    let isOpen = true
    const refused = (): Promise<never> =>
      Promise.reject(new Unavailable('fact bus', 'none', new Error('It is closed.')))
    const whileOpen = <T>(effect: () => T): Promise<T> => (isOpen ? ask(machine, effect) : refused())
    return {
      ensureTopics: wanted =>
        whileOpen(() => {
          for (const one of wanted) ensure(one)
        }),
      publish: messages => (isOpen ? inTurn(() => publish(machine, messages)) : refused()),
      deleteTopics: names =>
        whileOpen(() => {
          for (const name of names) topics.delete(name)
        }),
      grantReading: () => whileOpen(() => 'granted' as const),
      revokeReading: () => whileOpen(() => undefined),
      close: () => {
        isOpen = false
        return inTurn(() => Promise.resolve())
      },
    }
  }

  return {
    open: openFor,
    messages: topic => topics.get(topic) ?? [],
    topics: () => [...topics.keys()],
    tooLarge,
  }
}
