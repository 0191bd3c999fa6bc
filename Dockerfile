# The service, any mix of its roles. There is no build step: Node runs the TypeScript sources as they are.

FROM node:24.21.0-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev

FROM node:24.21.0-bookworm-slim
ENV NODE_ENV=production \
    PORT=8080
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY package.json ./
COPY streams ./streams
COPY projections ./projections
COPY src ./src
# The operators' command line: docker compose exec api node scripts/ledger.ts --help
COPY scripts ./scripts
# Everything above belongs to root: the service can read its own code, and not change it.
USER node
EXPOSE 8080
# The slim image has no curl; Node itself asks.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/readyz`).then(r => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--disable-warning=ExperimentalWarning", "--import", "./src/telemetry.ts", "src/main.ts"]
