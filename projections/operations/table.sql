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

-- What follows is not made from the log, so a rebuild leaves it alone. A file is bytes, and how far one has come is worth
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
