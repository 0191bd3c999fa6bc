-- The columns of projection.ts. Other columns need a new version in the name of the table, which is then filled from the
-- log (src/feeds/ledgerTables.ts).
create table audit_v2 (
  -- The event that the record was made of.
  id text primary key,
  position bigint not null,
  tenant_id text not null,
  created_at timestamptz not null,
  decision text not null,
  operation text not null,
  check_name text not null,
  code text,
  resource text,
  subject text not null,
  client text not null,
  authority text not null,
  correlation_id text not null,
  -- How many decisions the record stands for.
  count integer not null,
  -- As the caller gave it, where the operation takes one.
  reason text
);
create index audit_v2_page on audit_v2 (tenant_id, created_at desc, id desc);
-- For the position of the newest row, which must be in the log (src/logIdentity/logIdentity.ts).
create index audit_v2_position on audit_v2 (position);
create index audit_v2_by_correlation on audit_v2 (tenant_id, correlation_id, created_at, id);
