import { facts } from '../../projections/facts/projection.ts'
import type { Sql } from '../ports.ts'
import type { ReadModel } from './readModels.ts'

/**
 * The order in which facts became visible, which GET /events follows: a reader keeps a place in that order, and misses
 * nothing that comes behind it.
 *
 *   in its place   the fact arrived when the projector came to its position, and its arrival is that position
 *   late           its key was parked; it arrived behind every fact that was visible when it was replayed
 *
 * All of it is written while the row of the checkpoint is locked, so that arrivals become visible in their order.
 */

const REACHED = `
  insert into facts_head (id, position) values (1, $1)
  on conflict (id) do update set position = excluded.position where facts_head.position < excluded.position`

/**
 * Behind the checkpoint, and behind what readers had come to before the table was last made anew; the arrival never goes
 * back from one late fact to the next. A fact that came late before comes again.
 */
const ARRIVES_LATE = `
  insert into late_facts (position, tenant_id, arrival, seq)
  select f.position, f.tenant_id,
    greatest(f.position, c.position, (select position from facts_head), (select max(arrival) from late_facts)),
    (select coalesce(max(seq), 0) + 1 from late_facts)
  from ${facts.name} f join checkpoints c on c.name = '${facts.name}' where f.position = $1
  on conflict (position) do update set arrival = excluded.arrival, seq = excluded.seq`

/** The read model of the facts, which notes how far its readers can have come and which facts came late. */
export const inOrderOfArrival = (model: ReadModel): ReadModel => {
  const write = async (sql: Sql, events: Parameters<ReadModel['write']>[1]): Promise<void> => {
    await model.write(sql, events)
    const last = events.reduce((most, { position }) => (position > most ? position : most), -1n)
    await sql(REACHED, [last])
  }
  return {
    ...model,
    write,
    writeLate: async (sql, event) => {
      await model.write(sql, [event])
      await sql(ARRIVES_LATE, [event.position])
    },
  }
}
