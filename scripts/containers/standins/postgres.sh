#!/bin/bash
# What the entry point of the official image does with the variables that docker-compose.yml sets.
set -eu
export PATH=/usr/local/pgsql/bin:$PATH
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  mkdir -p "$PGDATA"
  [ -n "${POSTGRES_PASSWORD_FILE:-}" ] && POSTGRES_PASSWORD=$(<"$POSTGRES_PASSWORD_FILE")
  # shellcheck disable=SC2086 # options, separated by spaces
  initdb --pgdata="$PGDATA" --username="$POSTGRES_USER" --pwfile=<(printf '%s\n' "$POSTGRES_PASSWORD") \
    --auth-local=trust ${POSTGRES_INITDB_ARGS:-}
  echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
  printf 'create database "%s"\n' "${POSTGRES_DB:-$POSTGRES_USER}" | postgres --single -D "$PGDATA" postgres >/dev/null
fi
[ "$1" = postgres ] && set -- "$@" -c listen_addresses='*' -c unix_socket_directories=/var/run/postgresql
exec "$@"
