import type { DataOf } from '../codec.ts'
import { type Decider, type Rejection, reject } from '../decider.ts'
import type { ManifestEvent } from './events.ts'

/** The facts between two positions, both inclusive: their number, and the hash of their ids. */
export type Manifest = DataOf<ManifestEvent, 'ManifestSealed'>

export type SealManifest = Manifest & { type: 'SealManifest' }
export type ManifestCommand = SealManifest
export type ManifestCode = 'concurrent_modification'

/**
 * One stream per topic. Each manifest begins right after the one before, the first at the beginning of the log, so
 * a consumer that verifies all of them has no gap.
 */
export type ManifestState = { readonly last: Manifest | null }

/** The start of the next manifest. */
export const nextPosition = ({ last }: ManifestState): bigint => (last === null ? 0n : last.to_position + 1n)

const idsOf = ({ missing = [] }: Manifest): string => missing.map(({ id }) => id).join()

const isSame = (last: Manifest | null, other: Manifest): boolean =>
  last?.topic === other.topic &&
  last.from_position === other.from_position &&
  last.to_position === other.to_position &&
  last.count === other.count &&
  last.sha256 === other.sha256 &&
  idsOf(last) === idsOf(other)

const decide = (
  { type: _, ...sealed }: SealManifest,
  state: ManifestState,
): readonly ManifestEvent[] | Rejection<ManifestCode> => {
  if (isSame(state.last, sealed)) return []
  // Another process has sealed since the range was counted: it no longer begins where the next manifest has to begin.
  if (sealed.from_position !== nextPosition(state)) return reject('concurrent_modification')
  // The log has not moved since; there is nothing to seal.
  if (sealed.to_position < sealed.from_position) return []
  return [{ type: 'ManifestSealed', data: sealed }]
}

export const manifestDecider: Decider<ManifestState, ManifestCommand, ManifestEvent, ManifestCode> = {
  initial: { last: null },
  decide,
  evolve: (_, { data }) => ({ last: data }),
  growth: { SealManifest: 'unlimited' },
}
