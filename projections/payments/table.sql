-- The columns of projection.ts. Other columns need a new version in the name of the table, which is then filled from the
-- log (src/feeds/ledgerTables.ts).
create table payments_v1 (
  id text primary key,
  tenant_id text not null,
  state text not null,
  revision bigint not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  created_by text not null,
  invoice_id text not null,
  order_id text not null,
  amount bigint not null,
  currency text not null,
  reference text,
  settlement text not null,
  failure_code text,
  refunded_amount bigint not null,
  metadata json not null
);
create index payments_v1_page on payments_v1 (tenant_id, created_at desc, id desc);
