import type { CopyRows } from '../../projections/projection.ts'
import type { AnyEvent } from '../../streams/decider.ts'
import type { Recorded } from '../../streams/envelope.ts'
import type { Sql } from '../ports.ts'

/** The port between the projector and each read model. */

/** A table that the projector writes. Its checkpoint has the same name. */
export type ReadModel = {
  readonly name: string
  readonly categories: readonly string[]
  /**
   * Writes the changes of the events. An event that was written before changes nothing; a gap throws. `copy` is given where the
   * events are after the checkpoint, so rows which begin with them are new; if they are not, the transaction fails.
   */
  readonly write: (sql: Sql, events: readonly Recorded<AnyEvent>[], copy?: CopyRows) => Promise<void>
  /**
   * Writes an event that was parked until now, where that differs from `write` because readers keep positions in the table. The
   * row of the checkpoint is locked. Called only after the run has passed everything that they can have reached.
   */
  readonly writeLate?: (sql: Sql, event: Recorded<AnyEvent>) => Promise<void>
  /**
   * Advances the revision of a row over an event that was discarded, so the next event of the stream is no gap. False
   * if the stream has no row.
   */
  readonly skipEvent?: (sql: Sql, event: { readonly key: string; readonly revision: bigint }) => Promise<boolean>
}
