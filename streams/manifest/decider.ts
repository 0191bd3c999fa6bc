import { type Decider, type Rejection, reject } from '../decider.ts'
import type { ManifestEvent } from './events.ts'

/** An event that is held back: it is a fact, or would be one if it could be read. */
export type MissingFact = { readonly id: string; readonly position: bigint }

/** What lies between two positions, both inclusive: how many facts, and the hash over their ids. */
export type Manifest = {
  readonly topic: string
  readonly from_position: bigint
  readonly to_position: bigint
  readonly count: number
  readonly sha256: string
  /** Not counted, since they are held back; absent when there are none. */
  readonly missing?: readonly MissingFact[] | undefined
}

export type SealManifest = Manifest & { type: 'SealManifest' }
export type ManifestCommand = SealManifest
export type ManifestCode = 'concurrent_modification'

/**
 * One stream for each topic. Each manifest begins right behind the one before, the first at the beginning of the log: so
 * that they never overlap, and who has them all has no gap.
 */
export type ManifestState = { readonly last: Manifest | null }

/** Where the next manifest begins. */
export const nextPosition = ({ last }: ManifestState): bigint => (last === null ? 0n : last.to_position + 1n)

const idsOf = ({ missing = [] }: Manifest): string => missing.map(({ id }) => id).join()

const isSame = (last: Manifest | null, other: Manifest): boolean =>
  last?.topic === other.topic &&
  last.from_position === other.from_position &&
  last.to_position === other.to_position &&
  last.count === other.count &&
  last.sha256 === other.sha256 &&
  idsOf(last) === idsOf(other)

const seal = (
  { type: _, ...sealed }: SealManifest,
  state: ManifestState,
): readonly ManifestEvent[] | Rejection<ManifestCode> => {
  if (isSame(state.last, sealed)) return []
  // Somebody else has sealed meanwhile: what was counted begins at a position that is no longer the next.
  if (sealed.from_position !== nextPosition(state)) return reject('concurrent_modification')
  // The log has not moved since: there is nothing that a manifest could be of.
  if (sealed.to_position < sealed.from_position) return []
  return [{ type: 'ManifestSealed', data: sealed }]
}

const decide = (command: ManifestCommand, state: ManifestState) => {
  switch (command.type) {
    case 'SealManifest':
      return seal(command, state)
  }
}

const evolve = (_state: ManifestState, event: ManifestEvent): ManifestState => {
  switch (event.type) {
    case 'ManifestSealed':
      return { last: event.data }
  }
}

export const manifestDecider: Decider<ManifestState, ManifestCommand, ManifestEvent, ManifestCode> = {
  initial: { last: null },
  decide,
  evolve,
}
