import { facts } from '../../projections/facts/projection.ts'
import { NEXT_SEQ } from '../../projections/facts/queries.ts'
import type { ReadModel } from './readModel.ts'

/**
 * The order in which facts became visible, which GET /events follows: a reader continues from a position in that order,
 * and misses no fact that becomes visible later.
 *
 *   in order   the projector wrote the fact with the others of its batch: its arrival is its position
 *   late       the fact was parked: its arrival is the last position that was visible when it was replayed, and it is read
 *              after the facts that arrived there before
 *
 * A late fact is written only after the run of the projector has caught up with the log: after a restore of Postgres the
 * checkpoint is behind positions that readers have reached.
 *
 * Arrivals are written while the row of the checkpoint is locked, so that they become visible in their order.
 */

const MOVE_HEAD = `
  insert into facts_head (id, position) values (1, $1)
  on conflict (id) do update set position = excluded.position where facts_head.position < excluded.position`

/**
 * The arrival is the checkpoint, or the position that readers can have reached before the table was last rebuilt, or the
 * arrival of an earlier late fact, whichever is the latest. A late fact that is replayed again gets a new arrival.
 */
const ARRIVE_LATE = `
  insert into late_facts (position, tenant_id, arrival, seq)
  select f.position, f.tenant_id,
    greatest(f.position, c.position, (select position from facts_head), (select max(arrival) from late_facts)),
    ${NEXT_SEQ}
  from ${facts.name} f join checkpoints c on c.name = '${facts.name}' where f.position = $1
  on conflict (position) do update set arrival = excluded.arrival, seq = excluded.seq`

/** The read model of the facts, with the position that readers can have and the late facts. */
export const inOrderOfArrival = (model: ReadModel): ReadModel => {
  const write: ReadModel['write'] = async (sql, events, copy) => {
    await model.write(sql, events, copy)
    const last = events.reduce((most, { position }) => (position > most ? position : most), -1n)
    await sql(MOVE_HEAD, [last])
  }
  return {
    ...model,
    write,
    writeLate: async (sql, event) => {
      await model.write(sql, [event])
      await sql(ARRIVE_LATE, [event.position])
    },
  }
}
