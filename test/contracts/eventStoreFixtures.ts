/** Fixtures of the contract of event stores. */

import { randomUUID } from 'node:crypto'
import type { EventStore, FeedItem, JsonObject, NewEvent, StoredEvent, SubscribeOptions } from '../../src/ports.ts'

export type EventStoreUnderTest = {
  /** A new client. */
  open(): EventStore
  /** Stops the store gracefully and starts it on the same data and address; resolves when it is available. */
  readonly restart?: () => Promise<void>
  /** kill -9; the store starts again by itself on the same data and address. */
  readonly kill?: () => void
  stop(): Promise<void>
}

const FEED_WAIT_MAX_MS = 120_000

export const event = (data: JsonObject = {}, type = 'Happened'): NewEvent => ({
  id: randomUUID(),
  type,
  data,
  metadata: {},
})
export const events = (count: number): NewEvent[] => Array.from({ length: count }, (_, n) => event({ n }))

/** A category that no other case uses, so that the suite can share a store with anything. */
export const newCategory = (): string => `test${randomUUID().replaceAll('-', '')}`
export const newStream = (category = newCategory()): string => `${category}-${randomUUID()}`

export const all = async <T>(items: AsyncIterable<T>): Promise<T[]> => {
  const collected: T[] = []
  for await (const item of items) collected.push(item)
  return collected
}

export const idsOf = (list: readonly { readonly id: string }[]): string[] => list.map(({ id }) => id)
export const revisionsOf = (list: readonly StoredEvent[]): bigint[] => list.map(({ revision }) => revision)

export type Feed = {
  readonly items: FeedItem[]
  readonly events: StoredEvent[]
  /** Resolves when the condition is met. Rejects after two minutes, and when the subscription fails. */
  until(holds: (feed: Feed) => boolean): Promise<void>
  stop(): Promise<void>
}

/** Subscribes and collects the items. */
export const feed = (store: EventStore, options: Omit<SubscribeOptions, 'signal'>): Feed => {
  const stopping = new AbortController()
  const items: FeedItem[] = []
  const received: StoredEvent[] = []
  let check = (): void => undefined
  const running = (async () => {
    for await (const item of store.subscribe({ ...options, signal: stopping.signal })) {
      items.push(item)
      if (item.kind === 'event') received.push(item.event)
      check()
    }
  })()
  const collected: Feed = {
    items,
    events: received,
    until: holds =>
      new Promise((resolve, reject) => {
        const late = setTimeout(
          () => reject(new Error(`not within ${FEED_WAIT_MAX_MS} ms: ${holds.toString()}`)),
          FEED_WAIT_MAX_MS,
        )
        check = () => {
          if (!holds(collected)) return
          clearTimeout(late)
          resolve()
        }
        running.catch(reject)
        check()
      }),
    stop: async () => {
      stopping.abort()
      await running
    },
  }
  return collected
}

export const caughtUp = ({ items }: Feed): boolean => items.some(({ kind }) => kind === 'caught_up')
