import type { AdapterPayload } from 'oidc-provider'
import type { NewRecord, RecordName, Records } from './records.ts'

const MAX_RECORDS = 10_000

type Entry = { readonly payload: AdapterPayload; readonly expiresAtMs: number }

const keyOf = ({ kind, id }: RecordName): string => `${kind}:${id}`

/**
 * Records in memory, for an issuer without a database. The oldest are evicted beyond the limit. Long because it lists
 * the methods of the port.
 */
export const createMemoryRecords = (): Records => {
  const entries = new Map<string, Entry>()

  const live = (name: RecordName): AdapterPayload | undefined => {
    const entry = entries.get(keyOf(name))
    if (!entry || entry.expiresAtMs > Date.now()) return entry?.payload
    entries.delete(keyOf(name))
    return undefined
  }

  const put = async (record: NewRecord): Promise<void> => {
    const oldest = entries.size >= MAX_RECORDS ? entries.keys().next() : undefined
    if (oldest && !oldest.done) entries.delete(oldest.value)
    const expiresAtMs = Date.now() + record.lifetimeSeconds * 1000
    entries.set(keyOf(record), { payload: { ...record.payload }, expiresAtMs })
  }

  return {
    put,
    putIfNew: async record => {
      if (live(record)) return false
      await put(record)
      return true
    },
    get: async name => {
      const payload = live(name)
      return payload && { ...payload }
    },
    consume: async name => {
      const payload = live(name)
      if (!payload || payload.consumed !== undefined) return false
      payload.consumed = Math.floor(Date.now() / 1000)
      return true
    },
    remove: async name => void entries.delete(keyOf(name)),
    removeOfGrant: async (kind, grantId) => {
      for (const [key, { payload }] of entries)
        if (key.startsWith(`${kind}:`) && payload.grantId === grantId) entries.delete(key)
    },
  }
}
