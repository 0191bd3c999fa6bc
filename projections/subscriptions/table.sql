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
  -- Where its delivery begins: since the newest replay if there was one.
  from_position bigint not null,
  from_time timestamptz,
  replays integer not null,
  -- Of the replay under way; null when there is none.
  replay_to bigint,
  stop_reason text,
  metadata json not null
);
create index subscriptions_v1_page on subscriptions_v1 (tenant_id, created_at desc, id desc);
-- Those that have something to be done for them, whoever's they are.
create index subscriptions_v1_living on subscriptions_v1 (id) where state <> 'deleted';
