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
-- Most payments are in the state in which they end. In that state the index of pages finds them; the few in another state
-- would be searched among all rows of the tenant (page.ts).
create index payments_v1_by_state on payments_v1 (tenant_id, state, created_at, id) where state <> 'succeeded';
create index payments_v1_by_order on payments_v1 (tenant_id, order_id, created_at, id);
create index payments_v1_by_invoice on payments_v1 (tenant_id, invoice_id, created_at, id);
create index payments_v1_by_reference on payments_v1 (tenant_id, reference, created_at, id) where reference is not null;
