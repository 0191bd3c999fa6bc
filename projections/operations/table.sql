-- The columns of projection.ts. Other columns need a new version in the name of the table, which is then filled from the
-- log (src/feeds/ledgerTables.ts).
create table operations_v1 (
  id text primary key,
  tenant_id text not null,
  state text not null,
  revision bigint not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  created_by text not null,
  kind text not null,
  resource text not null,
  format text not null,
  filters json not null,
  metadata json not null,
  expires_at timestamptz not null,
  correlation_id text not null,
  attempt integer not null,
  completed_at timestamptz,
  row_count bigint,
  byte_count bigint,
  sha256 text,
  from_position bigint,
  to_position bigint,
  error_code text
);
create index operations_v1_page on operations_v1 (tenant_id, created_at desc, id desc);
create index operations_v1_overdue on operations_v1 (expires_at) where state in ('pending', 'running', 'succeeded');
