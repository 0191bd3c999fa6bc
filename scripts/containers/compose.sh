#!/usr/bin/env bash
# podman-compose with docker-compose.yml as it is, the images of images.sh, an issuer, and secrets made at first use:
#   scripts/containers/compose.sh --profile pair up
#   scripts/containers/compose.sh --file scripts/compose/tls.yaml up
#   scripts/containers/compose.sh down --volumes
# `up` leaves out the parts without a stand-in: the collector, Prometheus and Grafana.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../.."

# Debian's 1.0.3 ignores which services are named.
if [[ ! $(podman-compose version) =~ podman-compose\ version\ (1\.([6-9]|[1-9][0-9])|[2-9]) ]]; then
  echo 'This needs podman-compose 1.6: pip install podman-compose==1.6.0' >&2
  exit 1
fi

readonly DATA=$PWD/.data/containers
export ISSUER_DIR=$DATA/issuer CONTAINERS_CONF="$here/containers.conf" BUILDAH_FORMAT=docker
umask 077
mkdir -p "$ISSUER_DIR"
# secret NAME COMMAND…: exports what the command printed the first time.
secret() {
  local name=$1
  shift
  [ -s "$DATA/$name" ] || "$@" >"$DATA/$name"
  export "$name=$(<"$DATA/$name")"
}
secret POSTGRES_PASSWORD openssl rand -hex 16
secret EVENTSTORE_PASSWORD openssl rand -hex 16
secret API_KEY_PEPPER openssl rand -hex 32
secret EVIDENCE_SIGNING_KEY openssl genpkey -algorithm ed25519
export GRAFANA_PASSWORD=none OIDC_ISSUER=https://issuer:8443/oauth OIDC_AUDIENCE=payment-ledger
if [ ! -s "$ISSUER_DIR/tls.crt" ]; then
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365 -subj /CN=issuer \
    -addext subjectAltName=DNS:issuer -keyout "$ISSUER_DIR/tls.key" -out "$ISSUER_DIR/tls.crt" 2>/dev/null
  # The service's own user reads it.
  chmod 644 "$ISSUER_DIR/tls.crt"
fi

compose() {
  podman-compose --file docker-compose.yml --file "$here/standins/compose.yml" \
    --podman-build-args='--network host' "$@"
}

services=(eventstore postgres kafka issuer api feeds)
[[ " $* " == *' --profile pair '* ]] && services+=(api-2 feeds-2)
case " $* " in
  *' up '*)
    compose build api
    [[ " $* " == *' scripts/compose/tls.yaml '* ]] && compose "${@/#up/run}" --rm certificates
    compose "$@" --no-build --detach --no-deps "${services[@]}"
    ;;
  *) compose "$@" ;;
esac
