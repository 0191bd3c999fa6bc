import { facts } from '../../projections/facts/projection.ts'
import { parking } from '../../streams/parking/index.ts'
import { NEXT_SEQ } from '../../projections/facts/queries.ts'
import type { ReadModel } from './readModel.ts'

/**
 * The order in which facts became visible, which GET /events follows: a reader continues from a position in that order,
 * and misses no fact that becomes visible later.
 *
 *   in order   the projector wrote the fact with the others of its batch: its arrival is its position
 *   late       the fact was parked: its arrival is the checkpoint when it was replayed, and it is read after the facts that
 *              arrived there before
 *
 * A late fact is written only after the checkpoint has passed everything that readers can have reached
 * (parkingRecord.ts), and while its row is locked, so late facts become visible in their order.
 */

/** A late fact that is replayed again gets a new arrival. */
const ARRIVE_LATE = `
  insert into late_facts (position, tenant_id, arrival, seq)
  select f.position, f.tenant_id, c.position, ${NEXT_SEQ}
  from ${facts.name} f join checkpoints c on c.name = '${facts.name}' where f.position = $1
  on conflict (position) do update set arrival = excluded.arrival, seq = excluded.seq`

/** The read model of the facts. It also reads the record of parked facts, whose end it waits for. */
export const inOrderOfArrival = (model: ReadModel): ReadModel => ({
  ...model,
  categories: [...model.categories, parking.category],
  writeLate: async (sql, event) => {
    await model.write(sql, [event])
    await sql(ARRIVE_LATE, [event.position])
  },
})
