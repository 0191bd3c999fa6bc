-- Indexes that were added to tables of earlier versions: each start creates those that are missing (src/feeds/ledgerTables.ts).
-- An index needs no new version in the name of its table, because the rows remain as they are.

-- Most payments, invoices and orders are in the state in which they end. In that state the index of pages finds them; the
-- few in another state would be searched among all rows of the tenant.
create index payments_v1_state on payments_v1 (tenant_id, state, created_at desc, id desc) where state <> 'succeeded';
create index invoices_v1_state on invoices_v1 (tenant_id, state, created_at desc, id desc) where state <> 'paid';
create index orders_v1_state on orders_v1 (tenant_id, state, created_at desc, id desc) where state <> 'completed';
create index payments_v1_order on payments_v1 (tenant_id, order_id);
