import { LRUCache } from 'lru-cache'

/** A cache of event ids, for the recognition of resends. */

const IDS_MAX = 50_000

/**
 * The first stream with an event id, for the newest ids. The real server recognizes a resend without an exact expected
 * revision by one table of ids for all streams, which keeps the first event with an id.
 */
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
