-- The embedded event store, in a database of its own. One table holds everything: a stream's head is its largest revision,
-- its metadata the newest event of `$$stream`, a tombstone an event with the largest revision of all, so nothing has to
-- be kept consistent with the events.
create table if not exists events (
  position  bigint primary key,
  stream    text collate "C" not null,
  revision  bigint not null,
  event_id  uuid not null,
  type      text not null,
  is_json   boolean not null,
  data      bytea not null,
  metadata  bytea not null,
  created   bigint not null,
  unique (stream, revision)
)
