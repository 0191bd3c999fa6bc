import { type Adapter, type AdapterFactory, type AdapterPayload, errors } from 'oidc-provider'
import { type DevClient, metadataOf } from './clients.ts'
import { SESSION_LIFETIME_SECONDS } from './lifetimes.ts'
import { fingerprintOf, type Records } from './records.ts'

/** Sessions are looked up by a second name too; a record of this kind leads from it to the first. */
const SESSION_UID = 'Session.uid'

export type AdapterDependencies = {
  readonly records: Records
  readonly clients: () => Promise<readonly DevClient[]>
  /** Makes the API refuse what was given out under the grant of this name. */
  readonly revoke: (name: string) => Promise<void>
}

/** The name of a grant in access tokens and in the list of revoked ones: no secret, and nothing can be asked for with it. */
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
 * What oidc-provider asks of a store, on top of records. It checks whether a code or a refresh token is consumed and then
 * consumes it, in two steps: of twenty requests at once, all could pass the check. So consuming decides here: one wins,
 * and every other takes the whole grant back, because then a code or a token is in more than one pair of hands.
 */
export const createAdapters = ({ records, clients, revoke }: AdapterDependencies): AdapterFactory => {
  const revokeGrant = async (kind: string, grantId: string): Promise<void> => {
    // First of all the API refuses; a crash after this leaves records of a grant that nobody honours.
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
    // Of the device flow, which is closed.
    findByUserCode: async () => undefined,
    consume: id => consume(kind, id),
    destroy: id => records.remove({ kind, id }),
    revokeByGrantId: grantId => revokeGrant(kind, grantId),
  })
}
