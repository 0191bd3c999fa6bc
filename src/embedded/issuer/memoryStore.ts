import type { Adapter, AdapterFactory, AdapterPayload } from 'oidc-provider'

const MAX_RECORDS = 10_000

type Entry = { readonly payload: AdapterPayload; readonly expiresAtMs: number }

/** The oldest records go first when there are too many: development must not run out of memory. */
const makeRoom = (records: Map<string, Entry>): void => {
  const oldest = records.size >= MAX_RECORDS ? records.keys().next() : undefined
  if (oldest && !oldest.done) records.delete(oldest.value)
}

/**
 * What the issuer must remember between two requests: assertions already used, and later codes and refresh tokens. It
 * is forgotten at a restart; clients and the signing key, which must not be, are files.
 */
export const createMemoryStore = (): AdapterFactory => {
  const records = new Map<string, Entry>()

  const live = (key: string): AdapterPayload | undefined => {
    const entry = records.get(key)
    if (!entry || entry.expiresAtMs > Date.now()) return entry?.payload
    records.delete(key)
    return undefined
  }

  const findWhere = (kind: string, matches: (payload: AdapterPayload) => boolean): AdapterPayload | undefined =>
    [...records.keys()]
      .filter(key => key.startsWith(`${kind}:`))
      .map(live)
      .find(payload => payload !== undefined && matches(payload))

  return (kind): Adapter => ({
    upsert: async (id, payload, expiresInSeconds) => {
      makeRoom(records)
      const expiresAtMs = expiresInSeconds ? Date.now() + expiresInSeconds * 1000 : Number.POSITIVE_INFINITY
      records.set(`${kind}:${id}`, { payload, expiresAtMs })
    },
    find: async id => live(`${kind}:${id}`),
    findByUid: async uid => findWhere(kind, payload => payload.uid === uid),
    findByUserCode: async userCode => findWhere(kind, payload => payload.userCode === userCode),
    consume: async id => {
      const payload = live(`${kind}:${id}`)
      if (payload) payload.consumed = Math.floor(Date.now() / 1000)
    },
    destroy: async id => void records.delete(`${kind}:${id}`),
    revokeByGrantId: async grantId => {
      for (const [key, { payload }] of records) if (payload.grantId === grantId) records.delete(key)
    },
  })
}
