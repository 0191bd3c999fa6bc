import type { CopyRows } from '../../projections/projection.ts'
import type { AnyEvent } from '../../streams/decider.ts'
import type { Recorded } from '../../streams/envelope.ts'
import type { Sql } from '../ports.ts'

/** A table that the projector writes. Its checkpoint has the same name. */
export type ReadModel = {
  readonly name: string
  readonly categories: readonly string[]
  /**
   * An event that was written before changes nothing; a gap throws. `copy` is given for events after the checkpoint,
   * whose rows are new; if they are not, the transaction fails.
   */
  readonly write: (sql: Sql, events: readonly Recorded<AnyEvent>[], copy?: CopyRows) => Promise<void>
  /**
   * Writes an event that was parked, where readers keep positions in the table: once the run has passed all that they
   * can have reached, with the checkpoint's row locked.
   */
  readonly writeLate?: (sql: Sql, event: Recorded<AnyEvent>) => Promise<void>
  /** Advances a row over a discarded event, so the next one is no gap. False if the stream has no row. */
  readonly skipEvent?: (sql: Sql, event: { readonly key: string; readonly revision: bigint }) => Promise<boolean>
}
