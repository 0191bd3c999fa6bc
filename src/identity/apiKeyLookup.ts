import { LRUCache } from 'lru-cache'
import pLimit from 'p-limit'
import type { ApiKeyState } from '../../streams/apiKey/index.ts'
import type { ApiKeyId } from '../../streams/ids.ts'

/** A key as its stream has it, and the caller that it authenticates. */
export type IssuedKey = { readonly tenant: string; readonly subject: string; readonly key: ApiKeyState }

/** Reads the key from the store; undefined for an id that was never issued. */
export type LoadKey = (id: ApiKeyId) => Promise<IssuedKey | undefined>

/** The age up to which a reading is used: a revoked key stops on every instance well within 5 s. */
const READING_MAX_AGE_MS = 2_000
const KNOWN_MAX = 10_000
const UNKNOWN_MAX = 10_000
/** Concurrent readings of ids that are not known to exist. */
const UNKNOWN_AT_ONCE_MAX = 16

/** `at`: when the reading began, by the monotonic clock. */
export type Reading = { readonly at: number; readonly issued: IssuedKey | undefined }

/**
 * Long because its functions share the caches. Invented ids would each read the store: they have a limit and a cache of
 * their own, which evicts no key in use.
 */
export const createApiKeyLookup = (load: LoadKey, monotonicNow: () => number) => {
  const existing = new LRUCache<string, Reading>({ max: KNOWN_MAX })
  const unknown = new LRUCache<string, Reading>({ max: UNKNOWN_MAX })
  const underWay = new Map<string, Promise<Reading>>()
  const limitUnknown = pLimit(UNKNOWN_AT_ONCE_MAX)

  const read = async (id: ApiKeyId): Promise<Reading> => {
    // The age counts from the beginning, since a reading may miss a change that happens while it is in flight.
    const at = monotonicNow()
    const reading = { at, issued: await load(id) }
    const cache = reading.issued ? existing : unknown
    cache.set(id, reading)
    return reading
  }

  const readOnce = async (id: ApiKeyId): Promise<Reading> => {
    try {
      return await (existing.get(id) ? read(id) : limitUnknown(() => read(id)))
    } finally {
      underWay.delete(id)
    }
  }

  const join = (id: ApiKeyId): Promise<Reading> => {
    const reading = underWay.get(id) ?? readOnce(id)
    underWay.set(id, reading)
    return reading
  }

  return {
    /** Whether the key was found before. */
    isKnown: (id: ApiKeyId): boolean => existing.has(id),
    /** A recent reading, or a new one. */
    recentReading: async (id: ApiKeyId): Promise<Reading> => {
      const last = existing.get(id) ?? unknown.get(id)
      return last && monotonicNow() - last.at < READING_MAX_AGE_MS ? last : join(id)
    },
    /** A reading that begins after this call. Calls that wait for the same reading in flight share the next one. */
    newReading: async (id: ApiKeyId): Promise<Reading> => {
      // The reading in flight began too early; the first of the waiting calls begins the next one for all of them.
      await underWay.get(id)?.catch(() => undefined)
      return join(id)
    },
  }
}
