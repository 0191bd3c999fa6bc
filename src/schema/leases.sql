-- Run by each process that waits for a lease, in one implicit transaction.
select pg_advisory_xact_lock(hashtextextended('ledger_meta', 0));
create schema if not exists ledger_meta;
create table if not exists ledger_meta.leases (
  name text primary key, epoch bigint not null, holder text not null, taken_at timestamptz not null)
