-- The columns of projection.ts. Other columns need a new version in the name of the table, which is then filled from the
-- log (src/feeds/ledgerTables.ts).
create table subscriptions_v1 (
  id text primary key,
  tenant_id text not null,
  state text not null,
  revision bigint not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  created_by text not null,
  types json not null,
  principal text,
  scopes json not null,
  -- The start of delivery, or of the newest replay if there was one.
  from_position bigint not null,
  from_time timestamptz,
  replays integer not null,
  -- The end of the running replay; null when there is none.
  replay_to bigint,
  stop_reason text,
  metadata json not null
);
create index subscriptions_v1_page on subscriptions_v1 (tenant_id, created_at desc, id desc);
-- The subscriptions of all tenants that may have work (src/feeds/subscriptionCheckpoints.ts).
create index subscriptions_v1_living on subscriptions_v1 (id) where state <> 'deleted';
