-- Unlogged: the counts need not survive a crash, so they need not wait for the disk.
create unlogged table if not exists rate_counters_v1
  (key varchar(255) primary key, points integer not null default 0, expire bigint)
