-- The tables of feeds, processes and requests. `ledger projections reset` empties those that are made from the log
-- (src/logIdentity/logIdentity.ts) and keeps the others: export_chunks, operation_progress, fact_base,
-- subscription_creators, retired_api_versions, api_version_usage, tenant_bytes, personal_texts, export_erasures.

-- The checkpoint of each feed and of each read model.
create table if not exists checkpoints (
  name text primary key,
  position bigint not null,
  -- The epoch of the holder: a process that was replaced can no longer write.
  epoch bigint not null,
  updated_at timestamptz not null default now()
);
-- The bytes of exports, and their progress. Progress is not an event, because no decision depends on it and the next
-- attempt reports it anew.
create table if not exists export_chunks (
  operation_id text not null,
  attempt integer not null,
  seq integer not null,
  bytes bytea not null,
  primary key (operation_id, attempt, seq)
);
-- Compressing would cost more time than the space is worth for the days that a file is kept.
alter table export_chunks alter column bytes set storage external;
create table if not exists operation_progress (
  operation_id text primary key,
  attempt integer not null,
  -- Grows with every change: a part of the ETag of an operation that is in flight.
  tick integer not null,
  done bigint not null,
  total bigint not null,
  rate bigint not null,
  eta_seconds bigint
);
-- Places under the quotas of exports, API keys and subscriptions, taken before the event that needs them is appended.
create table if not exists reservations (
  kind text not null,
  tenant_id text not null,
  id text not null,
  -- The caller, where callers have a limit of their own.
  owner text not null,
  taken_at timestamptz not null default now(),
  -- Whether the resource was created; the read model may not show it yet.
  is_created boolean not null default false,
  primary key (kind, tenant_id, id)
);
-- The base URL of the `dataschema` attribute of every fact. It is stored, because a fact that is delivered again must have
-- the same bytes.
create table if not exists fact_base (
  id integer primary key check (id = 1),
  url text not null,
  -- Whether an operator set it; else it is the one that the service printed.
  is_set boolean not null
);
-- Events that could not be delivered or processed, and every later one of their keys: they wait, in order, for an operator.
create table if not exists parked_facts (
  -- The publisher, the id of a subscription, or the name of a read model or of a process manager.
  delivery text not null,
  position bigint not null,
  key text not null,
  stream text not null,
  revision bigint not null,
  event_id text not null,
  type text not null,
  tenant_id text not null,
  -- The error; one fixed sentence for an event that only waits behind an earlier one of its key (deadLetterReasons.ts).
  reason text not null,
  -- Zero for an event that only waits.
  attempts integer not null,
  first_failed_at timestamptz not null,
  -- The request of an operator, which the process that runs the delivery executes.
  requested text check (requested in ('replay', 'discard')),
  -- Whether a dead letter of a subscription is on its dead letter topic.
  announced boolean not null default false,
  primary key (delivery, position)
);
create index if not exists parked_facts_unannounced on parked_facts (delivery, position)
  where not announced and delivery <> 'publisher';
-- Dead letters that an operator has discarded, for process managers that read them again until their checkpoint has passed
-- them.
create table if not exists discarded_events (
  delivery text not null,
  position bigint not null,
  -- Set for read models only: the stream whose first event was discarded, so it has no row, and every later event of
  -- that stream is parked. The rows of read models stay, because a rebuild leaves discarded events out.
  key text,
  primary key (delivery, position)
);
-- The progress of the delivery to each subscription.
create table if not exists subscription_deliveries (
  subscription_id text primary key,
  -- The epoch of the process that delivers: a process that was replaced can no longer write.
  epoch bigint not null,
  -- The number of the replay that the position belongs to; zero before the first.
  replay integer not null,
  -- Everything up to here is in the topic, or parked.
  position bigint not null,
  -- The right to read that its principal has; null: no topic yet, or the right was revoked.
  acl text check (acl in ('granted', 'not_enforced', 'none')),
  -- retention.bytes of its topics as they were last set; null: no topic yet.
  topic_bytes bigint,
  updated_at timestamptz not null default now()
);
-- The creator of each subscription that is not deleted, and the last day (UTC) on which it was seen with a valid credential
-- (src/commands/subscriptions/confirmation.ts).
create table if not exists subscription_creators (
  subscription_id text primary key, tenant_id text not null, subject text not null, client text not null, seen_on date not null
);
create index if not exists subscription_creators_caller on subscription_creators (tenant_id, subject, client);
-- Facts that became visible after facts with later positions, because they were parked. Readers get them at their arrival,
-- so that a reader who has passed their positions misses none (src/feeds/arrivalOrder.ts).
create table if not exists late_facts (
  position bigint primary key,
  tenant_id text not null,
  -- The position after which a reader gets it: the last one that a reader could have reached when the fact became visible.
  arrival bigint not null,
  -- The order among facts with equal arrival.
  seq bigint not null unique
);
create index if not exists late_facts_tenant on late_facts (tenant_id, arrival, seq);
-- The read models that had every event of the log once since they were made. Readers of the others are refused, where a part of
-- the whole would be taken for the whole (src/http/resources/books/booksAt.ts).
create table if not exists complete_read_models (name text primary key);
-- The last error of each feed, for `ledger doctor`. It may have internals, so the API does not show it.
create table if not exists feed_errors (
  name text primary key,
  error text not null,
  at timestamptz not null default now()
);
-- The log that the read models, checkpoints and dead letters are made from: the id of its SecretMade event, which every log
-- has once and no other log has. One row.
create table if not exists log_identity (
  id integer primary key check (id = 1),
  log text not null
);
-- The API versions that an operator has switched off (`ledger versions retire`), read by every instance.
create table if not exists retired_api_versions (version text primary key, retired_at timestamptz not null default now());
-- The requests by API version, route template and client, added by all instances (src/http/versions/apiVersionUsage.ts). Days in UTC.
create table if not exists api_version_usage (
  day date not null,
  version text not null,
  route text not null,
  tenant_id text not null,
  client text not null,
  requests bigint not null,
  primary key (day, version, route, tenant_id, client)
);
-- The bytes that each tenant has stored, added by all instances (src/commands/quotas/tenantBytes.ts). Days in UTC.
create table if not exists tenant_bytes (
  day date not null, tenant_id text not null, bytes bigint not null, primary key (day, tenant_id)
);
-- Rebuilds of read models (src/feeds/rebuild), the newest last. Their state is here and not in the log, because it is that of
-- the tables of this database.
create table if not exists projection_rebuilds (
  id text primary key,
  seq bigint generated always as identity,
  kind text not null check (kind in ('rebuild', 'verify', 'rollback')),
  -- The folder in projections/.
  projection text not null,
  state text not null check (state in ('pending', 'running', 'refused', 'succeeded', 'failed', 'cancelled')),
  -- The epoch of the process that rebuilds: a process that was replaced can no longer write.
  epoch bigint not null default 0,
  -- Whether the new tables exist.
  prepared boolean not null default false,
  -- Every event up to here is in the new tables.
  position bigint not null default -1,
  done bigint not null default 0,
  total bigint,
  rate bigint,
  eta_seconds bigint,
  -- Row counts and checksums as they were compared; null before.
  parity json,
  -- The first difference that was found; null where there is none.
  difference json,
  -- Why an operator has the tables switched in spite of the difference.
  accepted_reason text,
  error text,
  requested_by text not null,
  requested_at timestamptz not null default now(),
  ended_at timestamptz
);
-- One at a time of each read model.
create unique index if not exists projection_rebuilds_open on projection_rebuilds (projection)
  where state in ('pending', 'running', 'refused');
-- Events that are parked for the live tables, and therefore missing in the tables of another generation: those that are being
-- built, or those that were replaced and are kept.
create table if not exists rebuild_held_events (
  projection text not null,
  generation text not null check (generation in ('building', 'previous')),
  position bigint not null,
  key text not null,
  stream text not null,
  revision bigint not null,
  event_id text not null,
  type text not null,
  tenant_id text not null,
  primary key (projection, generation, position)
);
-- The replaced tables that are kept in the schema ledger_previous, and the position up to which they have every event.
create table if not exists previous_projections (
  projection text primary key,
  position bigint not null,
  replaced_at timestamptz not null default now()
);
-- The personal texts of resources, which events name by their tokens (src/personalTexts/personalTexts.ts). Nothing can make this
-- table anew, so it belongs into every backup. An erasure removes the text and keeps the row.
create table if not exists personal_texts (
  token text primary key,
  tenant_id text not null,
  kind text not null,
  -- A keyed hash of tenant, kind and text, by which a text that is used again finds its token.
  digest text not null,
  text text,
  created_at timestamptz not null default now(),
  erased_at timestamptz,
  check ((text is null) = (erased_at is not null))
);
create index if not exists personal_texts_digest on personal_texts (digest);
-- A text that is used again after its erasure has a second token, so earlier uses stay erased.
create unique index if not exists personal_texts_present on personal_texts (digest) where erased_at is null;
create index if not exists personal_texts_erased on personal_texts (kind, tenant_id) where erased_at is not null;
-- How many texts of the tenant and kind were erased when the file of an export was written: when there are more, the file may
-- have an erased text. Without a row none was.
create table if not exists export_erasures (
  operation_id text primary key,
  attempt integer not null,
  erased bigint not null
);
-- The starts and stops of the processes of the service. A process that runs, or was killed, has no stop.
create table if not exists service_processes (
  name text not null,
  roles text[] not null,
  started_at timestamptz not null default date_trunc('milliseconds', clock_timestamp()),
  stopped_at timestamptz,
  primary key (started_at, name)
);
-- The vocabulary that the process reads (streams/addedEvents.ts).
alter table service_processes add column if not exists vocabulary integer not null default 1;
-- Repeated while the process runs, which tells it from one that was killed.
alter table service_processes add column if not exists seen_at timestamptz not null default clock_timestamp();
