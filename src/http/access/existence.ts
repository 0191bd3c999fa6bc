import { isId } from '../../../streams/ids.ts'
import type { AggregateRepository } from '../../commands/aggregateRepository.ts'
import { streamWithId } from '../../commands/entities.ts'
import { Unavailable } from '../../ports.ts'
import { Problem, statusOf } from '../problems/problemCatalogue.ts'

/** 404 comes before faults of the content, so a faulty request finds out nothing that a correct one does not. */

/** The statuses of faults of a request's content and headers; 404 precedes them (contract, order of checks). */
const CONTENT_FAULTS: ReadonlySet<number> = new Set([400, 413, 415, 428])

export type NamedResource = {
  /** As the path has it. */
  readonly id: string | null
  readonly tenant: string
  /** Whether the route shows deleted resources too. */
  readonly showsDeleted: boolean | undefined
}

/** False for operations, which may be of a payment or a subscription, and when the store does not answer. */
const isMissing = async (aggregates: AggregateRepository, { id, tenant, showsDeleted }: NamedResource) => {
  const named = id === null || isId('op', id) ? undefined : streamWithId(id)
  if (named === undefined) return false
  try {
    const row = (await aggregates.loadOwn(named.entity, named.id, tenant))?.row
    return row === undefined || (row.state === 'deleted' && !showsDeleted)
  } catch (error) {
    if (error instanceof Unavailable) return false
    throw error
  }
}

/** Runs the checks of a request's content. The resource is looked up only if one of them fails. */
export const withMissingFirst = async <T>(
  aggregates: AggregateRepository,
  named: NamedResource,
  check: () => Promise<T>,
): Promise<T> => {
  try {
    return await check()
  } catch (error) {
    if (!(error instanceof Problem) || !CONTENT_FAULTS.has(statusOf(error.code))) throw error
    if (!(await isMissing(aggregates, named))) throw error
    const { headers } = error.extras
    throw new Problem('resource_not_found', headers === undefined ? {} : { headers })
  }
}
