import { LRUCache } from 'lru-cache'

const IDS_MAX = 50_000

/** The real server recognizes resends by one table for all streams, which keeps the first event with an id. */
export type EventIdCache = {
  of(id: string): string | undefined
  add(id: string, stream: string): void
}

export const openEventIdCache = (): EventIdCache => {
  const streams = new LRUCache<string, string>({ max: IDS_MAX })
  return {
    // Without an effect on the order of eviction, which is that of the log.
    of: id => streams.peek(id),
    add: (id, stream) => {
      if (!streams.has(id)) streams.set(id, stream)
    },
  }
}
