create table if not exists issuer_login_failures_v1
  (fingerprint text primary key, failures integer not null, ends_at timestamptz not null)
