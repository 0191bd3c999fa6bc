import type { AnyEvent } from '../streams/decider.ts'
import type { Recorded } from '../streams/envelope.ts'
import type { PeriodEvent } from '../streams/period/index.ts'

/**
 * Closed periods of the books. A closing has the position `complete_to`, up to which the books had every event. Entries
 * of events up to it keep their time; entries of later events have a time after the period. So books that are rebuilt
 * have the same entries in the period as at its closing.
 */

export type ClosingRow = {
  readonly tenant_id: string
  /** The last closed day: YYYY-MM-DD. */
  readonly through: string
  /** The books were complete up to this position. */
  readonly complete_to: bigint
  /** The first moment after the period: the end of that day in UTC. */
  readonly first_open: string
  readonly position: bigint
}

const DAY_MS = 24 * 60 * 60 * 1_000

/** The first moment after a day in UTC. */
export const endOfDay = (day: string): string => new Date(Date.parse(`${day}T00:00:00Z`) + DAY_MS).toISOString()

export const closingsOf = (events: readonly Recorded<AnyEvent>[]): ClosingRow[] =>
  (events as readonly Recorded<PeriodEvent>[]).flatMap(({ event, position, metadata }) =>
    event.type === 'PeriodClosed'
      ? [
          {
            tenant_id: metadata.tenant,
            through: event.data.through,
            complete_to: event.data.complete_to,
            first_open: endOfDay(event.data.through),
            position,
          },
        ]
      : [],
  )

/** The earliest time that an entry may have; undefined where no period is closed for it. */
export const firstOpenTime = (
  { tenant_id, position }: { readonly tenant_id: string; readonly position: bigint },
  closings: readonly ClosingRow[],
): string | undefined =>
  closings
    .filter(closing => closing.tenant_id === tenant_id && closing.complete_to < position)
    .map(({ first_open }) => first_open)
    .toSorted()
    .at(-1)
