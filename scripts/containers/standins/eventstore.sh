#!/bin/bash
# The embedded event store, which listens on the loopback interface alone, behind the port of KurrentDB.
set -eu
cd /repository
socat TCP-LISTEN:2113,fork,reuseaddr TCP:127.0.0.1:2114 &
exec node scripts/eventstore.ts --port 2114 --data-dir /var/lib/kurrentdb
