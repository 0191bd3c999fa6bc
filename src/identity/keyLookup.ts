import { LRUCache } from 'lru-cache'
import type { ApiKeyState } from '../../streams/apiKey/index.ts'
import type { ApiKeyId } from '../../streams/ids.ts'

/** A key as its stream has it, and whom it speaks for. */
export type IssuedKey = { readonly tenant: string; readonly subject: string; readonly key: ApiKeyState }

/** Resolves to what the store has now; undefined for an id that was never given out. */
export type LoadKey = (id: ApiKeyId) => Promise<IssuedKey | undefined>

/** What was read is believed for so long: a revoked key stops everywhere well within 5 s. */
const BELIEVED_MS = 2_000
const KNOWN_MAX = 10_000
const UNKNOWN_MAX = 10_000
/** Ids that nobody has seen yet are looked up by so many at once. */
const STRANGERS_AT_ONCE_MAX = 16

/** `at`: when it began, by the monotonic clock. */
export type Reading = { readonly at: number; readonly issued: IssuedKey | undefined }

/** Lets so many in at once; the others wait for their turn, in order. */
const turnstile = (most: number) => {
  const waiting: (() => void)[] = []
  let inside = 0
  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (inside === most) await new Promise<void>(resolve => waiting.push(resolve))
    else inside += 1
    try {
      return await work()
    } finally {
      // Whoever leaves gives its place to the next in line, so that nobody can slip in between.
      const next = waiting.shift()
      if (next) next()
      else inside -= 1
    }
  }
}

export type KeyLookup = {
  /** What was read not long ago, or is read now. */
  readonly recall: (id: ApiKeyId) => Promise<Reading>
  /** What the store has from now on. However many ask for the same key at once, they share one reading or two. */
  readonly readAnew: (id: ApiKeyId) => Promise<Reading>
}

/**
 * Reads keys through a short memory. Anybody can make up ids, each another one, and so each a reading of the store: they
 * wait in a line of their own, and what is remembered of them never takes the room of a key that is in use.
 */
export const createKeyLookup = (load: LoadKey, monotonicNow: () => number): KeyLookup => {
  const known = new LRUCache<string, Reading>({ max: KNOWN_MAX })
  const unknown = new LRUCache<string, Reading>({ max: UNKNOWN_MAX })
  const underWay = new Map<string, Promise<Reading>>()
  const asStranger = turnstile(STRANGERS_AT_ONCE_MAX)

  const read = async (id: ApiKeyId): Promise<Reading> => {
    // The age counts from the beginning: a reading knows of nothing that happens while it is under way.
    const at = monotonicNow()
    const reading = { at, issued: await load(id) }
    const memory = reading.issued ? known : unknown
    memory.set(id, reading)
    return reading
  }

  const readOnce = async (id: ApiKeyId): Promise<Reading> => {
    try {
      return await (known.get(id) ? read(id) : asStranger(() => read(id)))
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
    recall: async id => {
      const last = known.get(id) ?? unknown.get(id)
      return last && monotonicNow() - last.at < BELIEVED_MS ? last : join(id)
    },
    readAnew: async id => {
      // The one that is under way began too early; whichever of those who waited is first begins the next for all.
      await underWay.get(id)?.catch(() => undefined)
      return join(id)
    },
  }
}
