-- The columns of projection.ts. Other columns need a new version in the name of the table, which is then filled from the
-- log (src/feeds/ledgerTables.ts).
create table invoices_v1 (
  id text primary key,
  tenant_id text not null,
  state text not null,
  revision bigint not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  created_by text not null,
  order_id text not null,
  currency text not null,
  amount_due bigint not null,
  amount_paid bigint not null,
  amount_pending bigint not null,
  amount_refunded bigint not null,
  due_date text not null,
  approved_by text,
  approved_at timestamptz,
  paid_at timestamptz,
  metadata json not null,
  reserved json not null
);
create index invoices_v1_page on invoices_v1 (tenant_id, created_at desc, id desc);
-- Most invoices are in the state in which they end. In that state the index of pages finds them; the few in another state
-- would be searched among all rows of the tenant (page.ts).
create index invoices_v1_by_state on invoices_v1 (tenant_id, state, created_at, id) where state <> 'paid';
create index invoices_v1_by_order on invoices_v1 (tenant_id, order_id, created_at, id);
