import type { AccessCheck } from '../../../streams/access/index.ts'
import type { Denials } from '../../commands/denials.ts'
import { streamWithId } from '../../commands/entities.ts'
import type { Context, Ledger } from '../../commands/commandHandler.ts'
import { type ErrorCode, Problem } from '../problems/problemCatalogue.ts'

/** Records the denials of `audited` routes. Grants are events of the operations, or recorded by them. */

/** The denials among the error codes. Malformed, stale or rate-limited requests are no decisions about the caller. */
const CHECK_OF_CODE: Readonly<Partial<Record<ErrorCode, AccessCheck>>> = {
  insufficient_scope: 'scope',
  credential_not_permitted: 'policy',
  policy_denied: 'policy',
  invoice_state_conflict: 'state',
  payment_state_conflict: 'state',
  payment_not_allowed: 'state',
  payment_exceeds_due: 'state',
  payment_reference_conflict: 'state',
  too_many_changes: 'state',
}

/** The tenant that the resource belongs to; undefined if it does not exist. */
const tenantOf = async ({ aggregates }: Ledger, resource: string): Promise<string | undefined> => {
  const named = streamWithId(resource)
  return named && (await aggregates.first(named.entity, named.id))?.metadata.tenant
}

/** Subject and client in the record of another tenant's caller: with a space, as no name in a credential has it. */
export const ANOTHER_TENANT = 'another tenant'

export type Attempted = {
  readonly operation: string
  /** The resource that the request names, as far as the request was read. */
  readonly resource: () => string | null
  readonly context: Context
}

type Recording = { readonly ledger: Ledger; readonly denials: Denials }

/** Executes the work. A denial by permission or state is recorded before the caller learns of it. */
export const withDenialRecording = async <T>(
  services: Recording,
  attempted: Attempted,
  work: () => Promise<T>,
): Promise<T> => {
  try {
    return await work()
  } catch (error) {
    if (error instanceof Problem) await recordDenial(services, attempted, error)
    throw error
  }
}

const recordDenial = async (
  { ledger, denials }: Recording,
  { operation, resource, context }: Attempted,
  denied: Problem,
): Promise<void> => {
  // A refusal that was decided after the key was bound is an event already, from which its audit record is projected.
  if (denied.extras.correlationId !== undefined) return
  const { code } = denied
  const named = resource()
  const check = CHECK_OF_CODE[code]
  if (check !== undefined) return denials.record({ operation, resource: named, check, code }, context)
  if (code !== 'resource_not_found' || named === null) return
  const denial = { operation, resource: named, check: 'tenant', code } as const
  const owner = await tenantOf(ledger, named)
  // A 404 about a resource of the caller's own tenant, such as a deleted one, is no decision about the caller.
  if (owner === context.tenant) return
  const records = [denials.record(denial, context)]
  if (owner !== undefined) records.push(denials.record(denial, asSeenBy(owner, context)))
  await Promise.all(records)
}

/**
 * The context of the owner's record: without the caller's name, its texts or its trace. Operators join it with the
 * caller's own record by the command: it is the correlation id here, and the causation id of both. Its bytes count
 * against the caller's quota.
 */
const asSeenBy = (owner: string, { traceparent: _, ...context }: Context): Context => ({
  ...context,
  tenant: owner,
  quota: { tenant: context.tenant },
  correlationId: context.commandId,
  subject: ANOTHER_TENANT,
  client: ANOTHER_TENANT,
})
