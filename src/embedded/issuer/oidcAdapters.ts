import { hash } from 'node:crypto'
import { type Adapter, type AdapterFactory, type AdapterPayload, errors } from 'oidc-provider'
import { type DevClient, metadataOf } from './clients.ts'
import { consoleMetadata } from './consoleClient.ts'
import { SESSION_LIFETIME_SECONDS } from './lifetimes.ts'

/** The storage that oidc-provider asks for: clients from their file, everything else in memory until it expires. */

export type AdapterDependencies = {
  readonly clients: () => Promise<readonly DevClient[]>
  /** The base URL of the service, at which its console is. */
  readonly resource: string
  /** Makes the API refuse the access tokens of the grant with this name. */
  readonly revoke: (name: string) => Promise<void>
  /** Milliseconds of a clock. */
  readonly now?: () => number
}

/** The oldest records are evicted beyond this number. */
const RECORDS_MAX = 10_000

/** The name of a grant in access tokens and in the list of revocations: a hash, which is useless as a credential. */
export const grantName = (grantId: string): string => `grant:${hash('sha256', grantId, 'base64url')}`

type Entry = { readonly payload: AdapterPayload; readonly expiresAtMs: number }

const createRecords = (now: () => number) => {
  const entries = new Map<string, Entry>()
  return {
    put: (key: string, payload: AdapterPayload, lifetimeSeconds: number): void => {
      const oldest = entries.keys().next().value
      if (entries.size >= RECORDS_MAX && oldest !== undefined) entries.delete(oldest)
      entries.set(key, { payload: { ...payload }, expiresAtMs: now() + lifetimeSeconds * 1_000 })
    },
    get: (key: string): AdapterPayload | undefined => {
      const entry = entries.get(key)
      if (entry && entry.expiresAtMs > now()) return entry.payload
      entries.delete(key)
      return undefined
    },
    remove: (key: string): void => void entries.delete(key),
    removeOfGrant: (kind: string, grantId: string): void => {
      for (const [key, { payload }] of entries)
        if (key.startsWith(`${kind}:`) && payload.grantId === grantId) entries.delete(key)
    },
  }
}

const clientAdapter = ({
  clients,
  resource,
}: Pick<AdapterDependencies, 'clients' | 'resource'>): Pick<Adapter, 'find' | 'upsert'> => ({
  find: async id => {
    const client = (await clients()).find(({ client_id }) => client_id === id)
    return client ? metadataOf(client) : consoleMetadata(id, resource)
  },
  upsert: async () => {
    throw new Error('Clients are registered by the command line alone.')
  },
})

/**
 * The library checks and consumes codes and refresh tokens in two steps. Here one concurrent request wins, and every
 * other revokes the grant, as more than one party knows it. Long because it lists the methods of the library's
 * interface.
 */
export const createAdapters = ({ revoke, now = Date.now, ...registered }: AdapterDependencies): AdapterFactory => {
  const records = createRecords(now)
  const copyOf = (key: string): AdapterPayload | undefined => {
    const payload = records.get(key)
    return payload && { ...payload }
  }
  const uidKey = (kind: string, uid: string): string => `${kind}.uid:${uid}`

  return kind => {
    const keyOf = (id: string): string => `${kind}:${id}`
    const revokeByGrantId = async (grantId: string): Promise<void> => {
      // The API refuses the tokens first: if it cannot be told, the records stay, and the caller tries again.
      await revoke(grantName(grantId))
      records.removeOfGrant(kind, grantId)
    }
    return {
      upsert: async (id, payload, lifetimeSeconds = SESSION_LIFETIME_SECONDS) => {
        if (kind === 'ReplayDetection' && records.get(keyOf(id)))
          throw new errors.InvalidClientAuth('the assertion was used already')
        records.put(keyOf(id), payload, lifetimeSeconds)
        // A session has a second name.
        if (kind === 'Session' && payload.uid !== undefined)
          records.put(uidKey(kind, payload.uid), { uid: id }, lifetimeSeconds)
      },
      find: async id => copyOf(keyOf(id)),
      findByUid: async uid => copyOf(keyOf(records.get(uidKey(kind, uid))?.uid ?? '')),
      // Part of the device flow, which is disabled.
      findByUserCode: async () => undefined,
      consume: async id => {
        const payload = records.get(keyOf(id))
        if (payload && payload.consumed === undefined) {
          payload.consumed = Math.floor(Date.now() / 1_000)
          return
        }
        if (payload?.grantId !== undefined) {
          await revokeByGrantId(payload.grantId)
          records.remove(`Grant:${payload.grantId}`)
        }
        throw new errors.InvalidGrant('used already')
      },
      destroy: async id => records.remove(keyOf(id)),
      revokeByGrantId,
      ...(kind === 'Client' ? clientAdapter(registered) : {}),
    }
  }
}
