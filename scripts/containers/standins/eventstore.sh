#!/bin/bash
# The embedded event store, which listens on the loopback interface alone, behind the port of KurrentDB, with TLS or without.
set -eu
cd /repository
if [ "$KURRENTDB_INSECURE" = true ]; then
  socat TCP-LISTEN:2113,fork,reuseaddr TCP:127.0.0.1:2114 &
else
  node scripts/containers/standins/tlsProxy.ts &
fi
exec node scripts/eventstore.ts --port 2114 --data-dir /var/lib/kurrentdb
