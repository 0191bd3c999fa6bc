-- The Merkle tree over the events of the log (src/evidence/README.md). These tables are kept by `ledger projections reset`:
-- they prove that a log which was restored from a backup has lost events.

-- One row for each signed event, in the order of the log. The leaf is its index in the tree.
create table if not exists evidence_leaves (
  leaf bigint primary key,
  position bigint not null,
  event_id uuid not null,
  stream text not null,
  revision bigint not null,
  -- The tenant at the time of head signing; null where the metadata named none.
  tenant_id text,
  hash bytea not null
);
create index if not exists evidence_leaves_event on evidence_leaves (event_id);
-- The hashes of perfect subtrees of every fourth level; those between are computed from them. A node never changes.
create table if not exists evidence_nodes (
  level integer not null,
  node bigint not null,
  hash bytea not null,
  primary key (level, node)
);
-- The signed heads, as they are in the file of heads.
create table if not exists evidence_heads (
  generation integer not null,
  tree_size bigint not null,
  head jsonb not null,
  primary key (generation, tree_size)
);
-- The public keys of the heads, base64 of SubjectPublicKeyInfo.
create table if not exists evidence_keys (
  id text primary key,
  public_key text not null
);
-- The accepted restores: the log had lost signed events, and an operator decided to continue. Each begins a generation of heads.
create table if not exists evidence_restarts (
  generation integer primary key,
  -- The leaves that the log still had.
  kept_size bigint not null,
  abandoned_size bigint not null,
  abandoned_root text not null,
  -- The id of the event that records the acceptance.
  audit_record uuid not null,
  accepted_by text not null,
  accepted_at timestamptz not null
);
