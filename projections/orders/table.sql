-- The columns of projection.ts. Other columns need a new version in the name of the table, which is then filled from the
-- log (src/feeds/ledgerTables.ts).
create table orders_v1 (
  id text primary key,
  tenant_id text not null,
  state text not null,
  revision bigint not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  created_by text not null,
  customer_reference text,
  description text,
  currency text not null,
  lines json not null,
  total_amount bigint not null,
  metadata json not null
);
create index orders_v1_page on orders_v1 (tenant_id, created_at desc, id desc);
-- Most orders are in the state in which they end. In that state the index of pages finds them; the few in another state
-- would be searched among all rows of the tenant (page.ts).
create index orders_v1_by_state on orders_v1 (tenant_id, state, created_at, id) where state <> 'completed';
