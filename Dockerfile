# The service, in any mix of its roles. There is no build step: Node runs the TypeScript sources as they are.

FROM node:24.21.0-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Optional are the embedded Postgres, the embedded issuer and the Node of `npm start`: production loads none of them.
# Source maps and declarations of types are half of the rest, and nothing reads them here.
RUN npm ci --omit=dev --omit=optional --ignore-scripts \
 && find node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.cts' -o -name '*.d.mts' \) -delete
# A new volume takes over the owner and the mode of the folder that it is mounted on.
RUN install -d -m 0700 /data/ledger

# The C++ library and time zones: no shell, no package manager, no npm.
FROM gcr.io/distroless/cc-debian12:nonroot
ARG VERSION=local
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Payment ledger" \
      org.opencontainers.image.description="An event-sourced payment ledger over HTTP" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="gcr.io/distroless/cc-debian12:nonroot"
# Of the service, and of commands that are run in its container: kafkajs sets timers with negative times.
ENV NODE_ENV=production \
    NODE_OPTIONS="--disable-warning=ExperimentalWarning --disable-warning=TimeoutNegativeWarning" \
    PORT=8080 \
    LEDGER_DATA_DIR=/var/lib/ledger
WORKDIR /app
COPY --from=build /usr/local/bin/node /usr/local/bin/node
COPY --from=build --chown=65532:65532 /data/ /var/lib/
COPY --from=build /app/node_modules ./node_modules
COPY package.json LICENSE ./
COPY streams ./streams
COPY projections ./projections
COPY src ./src
# The operators' command line: docker compose exec api node scripts/ledger.ts --help
COPY scripts ./scripts
# Everything above but the data belongs to root: the service can read its own code, and not change it. As a number,
# since Kubernetes cannot tell that a name is not root's.
USER 65532:65532
# Signed heads of the log: the only files that the service writes in production.
VOLUME /var/lib/ledger
EXPOSE 8080 9464
STOPSIGNAL SIGTERM
# Whether it answers, also without its dependencies: whoever restarts or removes containers by this would otherwise lose
# all of them at once, and with them the 503 that says why and when to retry. A start waits for Postgres. The image has no
# curl, so Node asks.
HEALTHCHECK --interval=10s --timeout=3s --start-period=5m --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/readyz?for=traffic`).then(r => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--import", "./src/telemetry.ts", "src/main.ts"]
