create table if not exists issuer_revocations_v1
  (name text primary key, expires_at timestamptz not null)
