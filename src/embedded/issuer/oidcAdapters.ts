import { type Adapter, type AdapterFactory, type AdapterPayload, errors } from 'oidc-provider'
import { type DevClient, metadataOf } from './clients.ts'
import { SESSION_LIFETIME_SECONDS } from './lifetimes.ts'
import { fingerprintOf, type Records } from './records.ts'

/** The storage that oidc-provider asks for, on top of the issuer's records and clients. */

/** Sessions have a second name; a record of this kind maps it to the first. */
const SESSION_UID = 'Session.uid'

export type AdapterDependencies = {
  readonly records: Records
  readonly clients: () => Promise<readonly DevClient[]>
  /** Makes the API refuse the access tokens of the grant with this name. */
  readonly revoke: (name: string) => Promise<void>
}

/** The name of a grant in access tokens and in the list of revocations: a hash, which is useless as a credential. */
export const grantName = (grantId: string): string => `grant:${fingerprintOf(grantId)}`

const clientAdapter = (clients: AdapterDependencies['clients']): Pick<Adapter, 'find'> => ({
  find: async id => {
    const client = (await clients()).find(({ client_id }) => client_id === id)
    return client && metadataOf(client)
  },
})

const refuse = async (): Promise<never> => {
  throw new Error('Clients are registered by the command line alone.')
}

/**
 * The storage adapter of oidc-provider, on top of records. The library checks whether a code or a refresh token is
 * consumed and consumes it in a second step, so twenty concurrent requests could all pass the check. Therefore
 * consuming decides here: one request wins, and every other one revokes the whole grant, because the code or token is
 * then known to more than one party. Long because it lists the methods of the library's interface.
 */
export const createAdapters = ({ records, clients, revoke }: AdapterDependencies): AdapterFactory => {
  const revokeGrant = async (kind: string, grantId: string): Promise<void> => {
    // The API refuses the tokens first; a crash after this leaves records of a grant that is revoked already.
    await revoke(grantName(grantId))
    await records.removeOfGrant(kind, grantId)
  }

  const upsert = async (kind: string, id: string, payload: AdapterPayload, lifetimeSeconds: number): Promise<void> => {
    const record = { kind, id, payload, lifetimeSeconds }
    if (kind === 'ReplayDetection') {
      if (!(await records.putIfNew(record))) throw new errors.InvalidClientAuth('the assertion was used already')
      return
    }
    await records.put(record)
    if (kind === 'Session' && payload.uid !== undefined)
      await records.put({ kind: SESSION_UID, id: payload.uid, payload: { uid: id }, lifetimeSeconds })
  }

  const consume = async (kind: string, id: string): Promise<void> => {
    if (await records.consume({ kind, id })) return
    const grantId = (await records.get({ kind, id }))?.grantId
    if (grantId !== undefined) {
      await revokeGrant(kind, grantId)
      await records.remove({ kind: 'Grant', id: grantId })
    }
    throw new errors.InvalidGrant('used already')
  }

  const findByUid = async (kind: string, uid: string): Promise<AdapterPayload | undefined> => {
    const id = (await records.get({ kind: `${kind}.uid`, id: uid }))?.uid
    return id === undefined ? undefined : await records.get({ kind, id })
  }

  return kind => ({
    upsert:
      kind === 'Client'
        ? refuse
        : (id, payload, lifetime) => upsert(kind, id, payload, lifetime || SESSION_LIFETIME_SECONDS),
    find: kind === 'Client' ? clientAdapter(clients).find : id => records.get({ kind, id }),
    findByUid: uid => findByUid(kind, uid),
    // Part of the device flow, which is disabled.
    findByUserCode: async () => undefined,
    consume: id => consume(kind, id),
    destroy: id => records.remove({ kind, id }),
    revokeByGrantId: grantId => revokeGrant(kind, grantId),
  })
}
