-- The columns of projection.ts. Other columns need a new version in the name of the table, which is then filled from the
-- log (src/feeds/ledgerTables.ts).
create table api_keys_v1 (
  id text primary key,
  tenant_id text not null,
  -- A key that has expired is still active here: expiry is no event, and queries compare expires_at with the clock.
  state text not null,
  revision bigint not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  created_by text not null,
  name text not null,
  scopes json not null,
  quota json,
  expires_at timestamptz not null,
  rotated_at timestamptz,
  previous_secret_until timestamptz,
  revoked_at timestamptz,
  metadata json not null
);
create index api_keys_v1_page on api_keys_v1 (tenant_id, created_at desc, id desc);
