import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { type FactMessage, type FactProducer, type TopicSettings, Unavailable } from '../../src/ports.ts'

/** Fixtures of the contract of fact buses. */

/** A message as it is stored in the topic. */
export type Published = {
  readonly partition: number
  readonly offset: bigint
  readonly key: string
  readonly headers: Readonly<Record<string, string>>
  readonly value: string
}

export type FactBusHarness = {
  open(): FactProducer
  read(topic: string): Promise<readonly Published[]>
}

/** A broker that the test can stop. */
export type BrokerFaultHarness = FactBusHarness & {
  /** A bus with the usual timeouts; that of `open` gives up after a second or two. */
  openWithUsualTimeouts(): FactProducer
  /** Kills the broker; resolves when it has ended. */
  cut(): Promise<void>
  /** Starts it again at the same address on the same data. */
  restore(): Promise<void>
  /** Stops the broker, which keeps its connections and does not respond until `thaw`. */
  freeze(): void
  thaw(): void
}

export const RETENTION_MS = 604_800_000
const PARTITIONS = 12
/** Enough calls for some of them to be under way during a fault. */
export const CALLS = 50

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

export const expectUnavailable = (error: Error, effect: Unavailable['effect']): void => {
  expect(error).to.be.instanceOf(Unavailable)
  expect(error).to.include({ dependency: 'fact bus', effect })
}

/** The values of each key in the order of the topic. Throws for a key in several partitions. */
export const valuesByKey = (messages: readonly Published[]): Map<string, string[]> => {
  for (const [key, ofKey] of Map.groupBy(messages, message => message.key)) {
    expect(new Set(ofKey.map(message => message.partition)).size, `partitions of ${key}`).to.equal(1)
  }
  const ordered = [...messages].sort((a, b) => Number(a.offset - b.offset))
  return new Map(
    [...Map.groupBy(ordered, message => message.key)].map(([key, ofKey]) => [key, ofKey.map(({ value }) => value)]),
  )
}

/** The values without duplicates, in the order of their first occurrence. */
export const firstSeen = (values: readonly string[]): string[] => [...new Set(values)]

export const upTo = (count: number): string[] => Array.from({ length: count }, (_, index) => String(index))
