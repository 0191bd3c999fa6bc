-- The tables of projection.ts. Other columns need a new version in the names of the tables, which are then filled from the
-- log (src/feeds/ledgerTables.ts).
create table journal_entries_v1 (
  -- The position of the event in the log: the order of the journal.
  position bigint primary key,
  event_id text not null unique,
  tenant_id text not null,
  -- Never before that of an earlier entry of the tenant, so a time names a position.
  at timestamptz not null,
  kind text not null,
  order_id text not null,
  invoice_id text not null,
  payment_id text,
  currency text not null,
  -- The event of the entry that this one reverses.
  reverses text
);
-- An entry is reversed once.
create unique index journal_entries_v1_reverses on journal_entries_v1 (reverses) where reverses is not null;
create index journal_entries_v1_position on journal_entries_v1 (tenant_id, position);
create index journal_entries_v1_time on journal_entries_v1 (tenant_id, at, position);
create index journal_entries_v1_order on journal_entries_v1 (order_id, position);
create index journal_entries_v1_invoice on journal_entries_v1 (invoice_id, position);
create index journal_entries_v1_payment on journal_entries_v1 (payment_id, position) where payment_id is not null;

create table journal_postings_v1 (
  position bigint not null,
  line integer not null,
  account text not null,
  direction text not null check (direction in ('debit', 'credit')),
  amount bigint not null check (amount > 0),
  currency text not null,
  primary key (position, line)
);

create table accounts_v1 (
  tenant_id text not null,
  code text not null,
  kind text not null,
  currency text not null,
  customer_reference text,
  -- The position of its first entry.
  position bigint not null,
  primary key (tenant_id, code)
);

-- The sums of an account after each entry that changes them, so a balance at any position is one look-up.
create table account_balances_v1 (
  tenant_id text not null,
  account text not null,
  position bigint not null,
  change bigint not null,
  debits bigint not null,
  credits bigint not null,
  pending bigint not null,
  primary key (tenant_id, account, position)
);

-- The customer of each order as it is now, and of each invoice as it was when its order was invoiced.
create table book_customers_v1 (
  id text primary key,
  customer_reference text
);

-- The closed periods of each tenant. Entries after `complete_to` have no time before `first_open`.
create table book_closings_v1 (
  tenant_id text not null,
  through text not null,
  complete_to bigint not null,
  first_open timestamptz not null,
  -- The position of the closing itself.
  position bigint primary key
);
create index book_closings_v1_tenant on book_closings_v1 (tenant_id, complete_to);

-- Refuses an entry in a period that is closed for it.
create or replace function check_book_closings_v1() returns trigger language plpgsql as $$
declare wrong bigint;
begin
  select changed.position into wrong from changed where exists (
    select from book_closings_v1 c
      where c.tenant_id = changed.tenant_id and c.complete_to < changed.position and c.first_open > changed.at) limit 1;
  if found then
    raise exception 'The journal entry at position % is in a closed period.', wrong using errcode = 'check_violation';
  end if;
  return null;
end $$;
create trigger open_after_insert after insert on journal_entries_v1
  referencing new table as changed for each statement execute function check_book_closings_v1();
create trigger open_after_update after update on journal_entries_v1
  referencing new table as changed for each statement execute function check_book_closings_v1();

-- Refuses an entry without postings, with postings of another currency, or whose debits differ from its credits. An entry and
-- its postings are written by one statement, at whose end both are checked. Each condition is a sum over the postings of one
-- entry, because Postgres plans that as an index look-up whatever it knows about the tables.
create or replace function check_journal_entries_v1() returns trigger language plpgsql as $$
declare wrong bigint;
begin
  select changed.position into wrong from changed where (
    select count(*) = 0 or bool_or(p.currency <> changed.currency)
        or sum(case p.direction when 'debit' then p.amount else -p.amount end) <> 0
      from journal_postings_v1 p where p.position = changed.position) limit 1;
  if found then
    raise exception 'The journal entry at position % is not balanced.', wrong using errcode = 'check_violation';
  end if;
  return null;
end $$;
create or replace function check_journal_postings_v1() returns trigger language plpgsql as $$
declare wrong bigint;
begin
  select touched.position into wrong from (select distinct c.position from changed c) touched where (
    select count(*) > 0 from journal_entries_v1 e where e.position = touched.position) and (
    select count(*) = 0 or count(distinct p.currency) > 1
        or sum(case p.direction when 'debit' then p.amount else -p.amount end) <> 0
      from journal_postings_v1 p where p.position = touched.position) limit 1;
  if found then
    raise exception 'The journal entry at position % is not balanced.', wrong using errcode = 'check_violation';
  end if;
  return null;
end $$;
create trigger balanced_after_insert after insert on journal_entries_v1
  referencing new table as changed for each statement execute function check_journal_entries_v1();
create trigger balanced_after_update after update on journal_entries_v1
  referencing new table as changed for each statement execute function check_journal_entries_v1();
create trigger balanced_after_insert after insert on journal_postings_v1
  referencing new table as changed for each statement execute function check_journal_postings_v1();
create trigger balanced_after_update after update on journal_postings_v1
  referencing new table as changed for each statement execute function check_journal_postings_v1();
create trigger balanced_before_update after update on journal_postings_v1
  referencing old table as changed for each statement execute function check_journal_postings_v1();
create trigger balanced_after_delete after delete on journal_postings_v1
  referencing old table as changed for each statement execute function check_journal_postings_v1();
