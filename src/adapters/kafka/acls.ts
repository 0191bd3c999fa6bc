import kafkajs, { type AclEntry, type AclFilter } from 'kafkajs'
import type { ReadingRights } from '../../ports.ts'
import { withAdmin } from './adminClient.ts'
import { type FactBusOptions, protocolErrorOf } from './client.ts'

const { AclOperationTypes, AclPermissionTypes, AclResourceTypes, ResourcePatternTypes } = kafkajs
const { READ, DESCRIBE } = AclOperationTypes

type Resource = Pick<AclEntry, 'resourceType' | 'resourceName' | 'resourcePatternType'>

const topicOf = (resourceName: string): Resource => ({
  resourceType: AclResourceTypes.TOPIC,
  resourceName,
  resourcePatternType: ResourcePatternTypes.LITERAL,
})

/** Every group with this prefix, so consumers choose the rest of the name. */
const groupsOf = (resourceName: string): Resource => ({
  resourceType: AclResourceTypes.GROUP,
  resourceName,
  resourcePatternType: ResourcePatternTypes.PREFIXED,
})

const entriesOf = (user: string, { topics, groupPrefix }: ReadingRights): AclEntry[] => {
  const allowed = { principal: `User:${user}`, host: '*', permissionType: AclPermissionTypes.ALLOW }
  const readable = topics.flatMap(topic => [READ, DESCRIBE].map(operation => ({ ...topicOf(topic), operation })))
  return [...readable, { ...groupsOf(groupPrefix), operation: READ }].map(entry => ({ ...entry, ...allowed }))
}

const filtersOf = ({ topics, groupPrefix }: ReadingRights): AclFilter[] =>
  [...topics.map(topicOf), groupsOf(groupPrefix)].map(resource => ({
    ...resource,
    operation: AclOperationTypes.ANY,
    permissionType: AclPermissionTypes.ANY,
  }))

/** False if the broker has no authorizer, and therefore no ACLs. */
const ifEnforced = async (work: () => Promise<unknown>): Promise<boolean> => {
  try {
    await work()
    return true
  } catch (error) {
    if (protocolErrorOf(error) === 'SECURITY_DISABLED') return false
    throw error
  }
}

/** Idempotent. Throws BrokerAccessDenied if this service may not change ACLs, or Unavailable. */
export const grantReading = (
  options: FactBusOptions,
  principal: string,
  rights: ReadingRights,
): Promise<'granted' | 'not_enforced'> =>
  withAdmin(options, async admin => {
    const acl = entriesOf(principal, rights)
    return (await ifEnforced(() => admin.createAcls({ acl }))) ? 'granted' : 'not_enforced'
  })

export const revokeReading = (options: FactBusOptions, rights: ReadingRights): Promise<void> =>
  withAdmin(options, async admin => {
    await ifEnforced(() => admin.deleteAcls({ filters: filtersOf(rights) }))
  })
