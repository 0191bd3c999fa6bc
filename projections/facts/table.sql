-- The columns of projection.ts. Other columns need a new version in the name of the table, which is then filled from the
-- log (src/feeds/ledgerTables.ts).
create table facts_v1 (
  position bigint primary key,
  tenant_id text not null,
  type text not null,
  subject text not null,
  at timestamptz not null,
  -- json, not jsonb: the fact is served with the very members, in the very order, in which Kafka carries it.
  event json not null
);
create index facts_v1_tenant on facts_v1 (tenant_id, position);
