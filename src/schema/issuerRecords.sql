-- The issuer's codes, sessions and refresh tokens. A row is named by the hash of a secret, and is encrypted with a key that
-- only that secret yields.
create table if not exists issuer_records_v1 (
  kind text not null,
  fingerprint text not null,
  grant_fingerprint text,
  sealed bytea not null,
  consumed_at timestamptz,
  expires_at timestamptz not null,
  primary key (kind, fingerprint)
);
create index if not exists issuer_records_v1_grant on issuer_records_v1 (grant_fingerprint);
create index if not exists issuer_records_v1_expiry on issuer_records_v1 (expires_at);
