#!/bin/sh
# A certificate authority, a certificate for each part, and the secrets of the service: each part gets a folder below /tls
# that its own user alone can read. What exists stays; with `renew`, all certificates are made anew. The key of the
# authority is not kept.
set -eu
umask 077
readonly DAYS=730

# give PART USER FILE…: copies them into the folder of the part.
give() {
  part=$1 user=$2
  shift 2
  cp -R "$@" "/tls/$part/"
  chmod -R u=rX,go= "/tls/$part"
  chown -R "$user:$user" "/tls/$part"
}

# certify PART USER NAME…: of the host names the first is the subject, by which Kafka knows its clients.
certify() {
  part=$1 user=$2 subject=$3
  shift 2
  names=$(printf ',DNS:%s' "$@")
  openssl req -x509 -CA ca.crt -CAkey ca.key -config openssl.cnf -days "$DAYS" -newkey rsa:2048 -nodes \
    -subj "/CN=$subject" -addext "subjectAltName=IP:127.0.0.1,DNS:localhost$names" \
    -addext basicConstraints=CA:FALSE -addext extendedKeyUsage=serverAuth,clientAuth \
    -keyout tls.key -out tls.crt 2>/dev/null
  give "$part" "$user" ca.crt tls.crt tls.key
}

cd "$(mktemp -d)"
if [ ! -s /tls/service/ca.crt ] || [ "${1:-}" = renew ]; then
  printf '[req]\ndistinguished_name = name\n[name]\n' >openssl.cnf
  openssl req -x509 -config openssl.cnf -days "$DAYS" -newkey rsa:2048 -nodes -subj '/CN=payment-ledger authority' \
    -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign -keyout ca.key -out ca.crt 2>/dev/null
  # The numbers are the users of the images.
  certify eventstore 1000 eventstore eventstore-1 eventstore-2 eventstore-3
  # The event store trusts every certificate of a folder.
  mkdir authorities
  cp ca.crt authorities/
  give eventstore 1000 authorities
  certify postgres 70 postgres
  certify kafka 1000 kafka
  # Kafka reads both from one file.
  cat tls.key tls.crt >tls.pem
  give kafka 1000 tls.pem
  certify collector 10001 otel-collector
  certify service 65532 ledger
fi

printf %s "$POSTGRES_PASSWORD" >postgres-password
give postgres 70 postgres-password
printf %s "$DATABASE_URL" >database-url
printf %s "$EVENTSTORE_URL" >eventstore-url
printf %s "$API_KEY_PEPPER" >api-key-pepper
printf %s "$EVIDENCE_SIGNING_KEY" >evidence-signing-key
give service 65532 database-url eventstore-url api-key-pepper evidence-signing-key
