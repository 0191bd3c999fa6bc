import { retiredVersions } from './apiVersionRetirement.ts'
import type { Database, World } from '../../ports.ts'
import { type ResolveVersion, resolveVersionWithout } from './requestedVersion.ts'

/** Follows the retirement of versions, which an operator changes while the service runs. */

/** A change takes effect on every instance within 5 seconds. */
const READ_EVERY_MS = 4_000

export type ServedVersions = { readonly resolveVersion: ResolveVersion; readonly close: () => Promise<void> }

type Dependencies = {
  readonly database: Pick<Database, 'sql'>
  readonly world: Pick<World, 'sleep'>
  /** Called with the error of a failed reading. The last one that succeeded counts. */
  readonly onFailure: (error: unknown) => void
}

/** Resolves when the retired versions were read, or reading failed. */
export const followRetiredVersions = async ({ database, world, onFailure }: Dependencies): Promise<ServedVersions> => {
  const closing = new AbortController()
  let current: ReadonlySet<string> = new Set()
  let resolveVersion = resolveVersionWithout(current)
  const read = async (): Promise<void> => {
    const retired = await retiredVersions(database.sql)
    if (retired.symmetricDifference(current).size === 0) return
    current = retired
    resolveVersion = resolveVersionWithout(retired)
  }
  const follow = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      await world.sleep(READ_EVERY_MS, closing.signal)
      if (!closing.signal.aborted) await read().catch(onFailure)
    }
  }
  await read().catch(onFailure)
  const following = follow()
  return {
    resolveVersion: header => resolveVersion(header),
    close: () => {
      closing.abort()
      return following
    },
  }
}
