-- Indexes that were added to tables of earlier versions: each start creates those that are missing (src/feeds/ledgerTables.ts).
-- An index needs no new version in the name of its table, because the rows remain as they are. Those of a filter have the order of
-- a page (page.ts).

-- Most payments, invoices and orders are in the state in which they end. In that state the index of pages finds them; the
-- few in another state would be searched among all rows of the tenant.
create index payments_v1_by_state on payments_v1 (tenant_id, state, created_at, id) where state <> 'succeeded';
create index invoices_v1_by_state on invoices_v1 (tenant_id, state, created_at, id) where state <> 'paid';
create index orders_v1_by_state on orders_v1 (tenant_id, state, created_at, id) where state <> 'completed';
create index payments_v1_by_order on payments_v1 (tenant_id, order_id, created_at, id);
create index payments_v1_by_invoice on payments_v1 (tenant_id, invoice_id, created_at, id);
create index payments_v1_by_reference on payments_v1 (tenant_id, reference, created_at, id) where reference is not null;
create index invoices_v1_by_order on invoices_v1 (tenant_id, order_id, created_at, id);
create index audit_v2_by_correlation on audit_v2 (tenant_id, correlation_id, created_at, id);
