/** The statements of the embedded event store. Its table is in src/schema/embeddedEvents.sql. */

const COLUMNS_OF_STREAM = 'position, revision, event_id, type, is_json, data, metadata, created'
const COLUMNS = 'position, stream, revision, event_id, type, is_json, data, metadata, created'

/** `$1` the name of a stream; returns head and metadata, null if there are none. */
export const SELECT_HEADS = `
  select named.stream, head.revision as head, meta.revision as meta_head, meta.data as meta
  from unnest($1::text[]) as named(stream)
  left join lateral (select revision from events where stream = named.stream order by revision desc limit 1) head on true
  left join lateral (
    select revision, data from events where stream = '$$' || named.stream order by revision desc limit 1
  ) meta on true`

/** `$1` streams, `$2` revisions; returns the existing ids. */
export const SELECT_BY_REVISION = `
  select asked.stream, found.revision, found.event_id, found.position, found.created
  from unnest($1::text[], $2::bigint[]) as asked(stream, revision)
  join lateral (
    select revision, event_id, position, created from events where stream = asked.stream and revision = asked.revision
  ) found on true`

/** `$1` streams, `$2` ids, `$3` for each the first revision to search. */
export const SELECT_BY_ID = `
  select asked.stream, found.revision, found.event_id, found.position, found.created
  from unnest($1::text[], $2::uuid[], $3::bigint[]) as asked(stream, event_id, since)
  join lateral (
    select revision, event_id, position, created from events
    where stream = asked.stream and revision >= asked.since and event_id = asked.event_id
  ) found on true`

/** One array for each column; `$9` is the time. */
export const INSERT = `
  insert into events (${COLUMNS})
  select position, stream, revision, event_id, type, is_json, data, metadata, $9::bigint
  from unnest(
    $1::bigint[], $2::text[], $3::bigint[], $4::uuid[], $5::text[], $6::boolean[], $7::bytea[], $8::bytea[]
  ) as t(position, stream, revision, event_id, type, is_json, data, metadata)`

export const SELECT_LAST = `select ${COLUMNS} from events order by position desc limit 1`

/** `$1` stream, `$2` and `$3` the inclusive bounds, `$4` the limit. */
export const SELECT_STREAM = {
  forwards: `select ${COLUMNS_OF_STREAM} from events where stream = $1 and revision between $2 and $3 order by revision limit $4`,
  backwards: `select ${COLUMNS_OF_STREAM} from events where stream = $1 and revision between $2 and $3 order by revision desc limit $4`,
}

/** `$1` the exclusive position (after it forwards, before it backwards), `$2` the limit. */
export const SELECT_ALL = {
  forwards: `select ${COLUMNS} from events where position > $1 order by position limit $2`,
  backwards: `select ${COLUMNS} from events where position < $1 order by position desc limit $2`,
}
