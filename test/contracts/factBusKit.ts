import { randomUUID } from 'node:crypto'
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

export const RETENTION_MS = 604_800_000
const PARTITIONS = 12
/** Enough calls for some of them to be under way whatever happens. */
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
export const firstSeen = (values: readonly string[]): string[] => [...new Set(values)]

export const upTo = (count: number): string[] => Array.from({ length: count }, (_, index) => String(index))
