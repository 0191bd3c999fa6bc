import { facts } from '../../projections/facts/projection.ts'
import { NEXT_SEQ } from '../../projections/facts/queries.ts'
import type { Sql } from '../ports.ts'

/**
 * Keeps the cursors of GET /events valid when the tables are emptied and filled again from the same log. A fact that is
 * parked now would reappear at its own position, which readers may have passed, so that it is noted as late before.
 * These rows are deleted at the next start if the tables are then filled from another log, or from an earlier state of
 * this one.
 */

const KEEP = `
  insert into facts_head (id, position, log)
  values (1, greatest(-1, (select max(arrival) from late_facts)), (select log from log_identity where id = 1))
  on conflict (id) do update set log = coalesce(excluded.log, facts_head.log)`

/**
 * The arrival is the position of the newest of them, or a later one that readers can have reached. The checkpoint
 * therefore reaches the arrival once all of them have been written or parked again, and no reader reaches it earlier. A
 * fact that came late before, and was parked again since, gets a new arrival, because readers may have passed the
 * former one meanwhile.
 */
const PARKED_COME_LATE = `
  insert into late_facts (position, tenant_id, arrival, seq)
  select p.position, p.tenant_id,
    greatest(max(p.position) over (), h.position, (select max(arrival) from late_facts)),
    ${NEXT_SEQ} - 1 + row_number() over (order by p.position)
  from parked_facts p cross join facts_head h
  where p.delivery = '${facts.name}' and p.tenant_id <> ''
  on conflict (position) do update set arrival = excluded.arrival, seq = excluded.seq`

/** To be called before the tables are emptied. */
export const keepReaderPositions = async (sql: Sql): Promise<void> => {
  await sql(KEEP)
  await sql(PARKED_COME_LATE)
}

const FORGET = `
  with gone as (
    delete from facts_head
    where log is not null and (log <> $1 or greatest(position, (select max(position) from late_facts)) > $2) returning id)
  delete from late_facts where exists (select from gone)`

/** `head` is the position of the newest event of the log. */
export const adoptReaderPositions = async (sql: Sql, log: string, head: bigint): Promise<void> => {
  await sql(FORGET, [log, head])
  await sql('update facts_head set log = null where log is not null')
}
