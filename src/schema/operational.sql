-- The checkpoint of each feed and of each read model.
create table if not exists checkpoints (
  name text primary key,
  position bigint not null,
  -- The epoch of the holder: a process that was replaced can no longer write.
  epoch bigint not null,
  updated_at timestamptz not null default now()
);
-- What is here is not made from the log, so a rebuild leaves it alone. A file is bytes, and how far one has come is worth
-- no event: nobody decides by it, and it is told anew by the next attempt.
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
  -- Grows with every change: a part of the ETag of an operation that is under way.
  tick integer not null,
  done bigint not null,
  total bigint not null,
  rate bigint not null,
  eta_seconds bigint
);
-- Who has how many exports under way. Taken before the export is accepted, so that two that come at once are not both the
-- last that is allowed.
create table if not exists export_slots (
  caller text not null,
  operation_id text not null,
  taken_at timestamptz not null default now(),
  primary key (caller, operation_id)
);
-- API keys that are about to be issued or renewed. Taken before the event is appended, so that two that come at once are
-- not both the last that the tenant may have.
create table if not exists api_key_slots (
  tenant_id text not null,
  key_id text not null,
  -- Whether it has expired and is given a new secret.
  renewed boolean not null,
  taken_at timestamptz not null default now(),
  primary key (tenant_id, key_id)
);
-- The address in front of the dataschema of every fact: remembered, since a fact that is delivered again has the same bytes.
create table if not exists fact_base (
  id integer primary key check (id = 1),
  url text not null,
  -- Whether an operator set it; else it is the one that the service printed.
  is_set boolean not null
);
-- The subscriptions that a tenant is about to have, or has before the read model knows: counted with those that are known.
create table if not exists subscription_places (
  tenant_id text not null,
  subscription_id text not null,
  is_created boolean not null default false,
  taken_at timestamptz not null default now(),
  primary key (tenant_id, subscription_id)
);
-- Facts that could not be delivered, and every later one of their keys: they wait here, in order, for an operator.
create table if not exists parked_facts (
  -- The publisher, or the id of a subscription.
  delivery text not null,
  position bigint not null,
  key text not null,
  stream text not null,
  revision bigint not null,
  event_id text not null,
  type text not null,
  tenant_id text not null,
  -- Why it could not be delivered; of a fact that waits behind another one of its key, which one that is.
  reason text not null,
  -- Zero for a fact that only waits.
  attempts integer not null,
  first_failed_at timestamptz not null,
  -- What the operator wants: the active process does it.
  requested text check (requested in ('replay', 'discard')),
  primary key (delivery, position)
);
-- Facts of subscriptions that were parked are announced on their dead letter topics.
alter table parked_facts add column if not exists announced boolean not null default false;
create index if not exists parked_facts_unannounced on parked_facts (delivery, position)
  where not announced and delivery <> 'publisher';
-- Parked events that an operator has discarded and a process may read again, until its checkpoint has passed them.
create table if not exists discarded_events (
  delivery text not null,
  position bigint not null,
  primary key (delivery, position)
);
-- Set by read models alone: the stream whose beginning was discarded, so that it has no row. Kept for good: later events of
-- that stream are parked, and others are not held up by them.
alter table discarded_events add column if not exists key text;
-- How far each subscription has been delivered.
create table if not exists subscription_deliveries (
  subscription_id text primary key,
  -- Of the holder that delivers it: whoever was replaced can no longer write.
  epoch bigint not null,
  -- The number of the replay that the position belongs to; zero before the first.
  replay integer not null,
  -- Everything up to here is in the topic, or parked.
  position bigint not null,
  -- What its principal has been granted; null as long as there is no topic, or what was granted was taken away again.
  acl text check (acl in ('granted', 'not_enforced', 'none')),
  updated_at timestamptz not null default now()
);
-- Facts that became visible after facts with later positions: their keys were parked. They are kept in the order in which
-- they came, so that a reader who has passed their positions is still given them, and so is one who reads a rebuilt table.
create table if not exists late_facts (
  position bigint primary key,
  tenant_id text not null,
  -- Where they stand in the feed: behind every fact that anybody could have read when they came.
  arrival bigint not null,
  -- The number of the late arrival; it orders those of one place.
  seq bigint not null unique
);
create index if not exists late_facts_tenant on late_facts (tenant_id, arrival, seq);
-- The furthest position that a reader of the facts can have reached, before a rebuild too. One row.
create table if not exists facts_head (
  id integer primary key check (id = 1),
  position bigint not null
);
-- The log of the places above, while the tables beside them are empty and of no log.
alter table facts_head add column if not exists log text;
-- Why a feed does not go on, in the words of what failed: for the operator (ledger doctor), and nobody else.
create table if not exists feed_errors (
  name text primary key,
  error text not null,
  at timestamptz not null default now()
);
-- The log that the read models, checkpoints and parked events are of: the id of the event that made its secret. One row.
create table if not exists log_identity (
  id integer primary key check (id = 1),
  log text not null
);
