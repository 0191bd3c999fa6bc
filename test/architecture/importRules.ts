import type { Import, Source } from './source.ts'
import { importsOf } from './source.ts'

/** The import rules: one row for each layer. A file that no row covers is in the wrong place. */

type ImportRule = {
  readonly layer: string
  readonly files: RegExp
  /** Modules that a file of this layer may import; `$1` stands for the first group of `files`. */
  readonly may: readonly string[]
  /** Modules from which it may import types only. */
  readonly mayTypes?: readonly string[]
}

/** The public modules of streams/: the shared files, and the index of each aggregate. */
const STREAMS = ['streams/[^/]+\\.ts', 'streams/[^/]+/index\\.ts']
const PROJECTIONS = ['projections/.+']
const NODE = 'node:[a-z0-9_/]+'
const PORTS = 'src/ports\\.ts'
const TELEMETRY_API = '@opentelemetry/api'
/** The error that ends a process with one sentence in place of a stack. */
const STARTUP_ERROR = 'src/startupError\\.ts'
/** A rule whose amounts are a setting. */
const APPROVAL_POLICY = 'src/identity/approvalPolicy\\.ts'
/** The setting for which the configuration has a default. */
const IDEMPOTENCY_RETENTION = 'src/commands/idempotencyRetention\\.ts'
/** A promise about the topics, kept by the publisher and the subscriptions and stated in asyncapi.json. */
const TOPIC_RETENTION = 'src/topicRetention\\.ts'
/** The default of a setting, stated in openapi.json. */
const LIMITS = 'src/limits\\.ts'
const REVALIDATION = 'src/staleWhileRevalidate\\.ts'
/** The stored form of an event, shared by its writer and its readers. */
const STORED_EVENTS = 'src/commands/storedEvents\\.ts'

/** The codes of accounts, shared by the writer of the books and their endpoints. */
const ACCOUNT_CODES = 'src/commands/accountCodes\\.ts'

/** The encoding of gRPC messages, shared by the client and the embedded server. */
const GRPC = 'src/grpc/\\w+\\.ts'

/** The steps at which tests kill the process. */
const CRASH_POINTS = 'src/crashPoints\\.ts'

/** The limits and turns of tenants and their callers. */
const FAIRNESS = 'src/fairness/\\w+\\.ts'
/** Whom the present work is for. */
const CURRENT_ACCOUNT = 'src/fairness/currentAccount\\.ts'

/** The tables that are not read models, and the advisory locks. */
const SCHEMA = 'src/schema/\\w+\\.ts'

/** The folders and files of src/http in their order: each imports from itself and from those before it. */
const HTTP_ROOMS = [
  'versions/',
  'problems/',
  'admission/',
  'reading/',
  'services.ts',
  'route.ts',
  'response/',
  'request/',
  'access/',
  // Shared by the resources.
  'resources/(?:collection|commonReplies|commonSchemas|operationSchema|paging).ts',
  'resources/books/',
  'resources/events/',
  'resources/identity/',
  'resources/subscriptions/',
  'resources/',
  'translation/',
  'contract/',
  'requestPipeline.ts',
  'server/',
  'index.ts',
]

/** Modules outside of src/http that each of its files may import. */
const OUTSIDE_HTTP = [
  // A list states the position up to which it is projected; operators see the lag of read models, and rebuild them.
  'src/(identity|commands|evidence)/.+|src/feeds/(checkpoints|lag|rebuild/requests)\\.ts|express|zod|zod-openapi|jose|lru-cache|p-limit',
  ...STREAMS,
  ...PROJECTIONS,
  PORTS,
  TOPIC_RETENTION,
  LIMITS,
  FAIRNESS,
  'src/metrics\\.ts',
  NODE,
  TELEMETRY_API,
]

const importRules: readonly ImportRule[] = [
  { layer: 'the list of aggregates', files: /^streams\/index\.ts$/, may: ['streams/[^/]+/index\\.ts'] },
  {
    layer: 'the shared files of streams',
    files: /^streams\/[^/]+\.ts$/,
    may: ['zod', 'streams/(?!index\\.ts)[^/]+\\.ts'],
  },
  {
    layer: 'an aggregate',
    files: /^streams\/([^/]+)\/[^/]+\.ts$/,
    may: ['zod', 'streams/(?!index\\.ts)[^/]+\\.ts', 'streams/$1/[^/]+\\.ts'],
  },
  { layer: 'projections', files: /^projections\//, may: ['zod', ...STREAMS, ...PROJECTIONS], mayTypes: ['pg'] },
  { layer: 'the ports', files: /^src\/ports\.ts$/, may: [], mayTypes: [...STREAMS, ...PROJECTIONS, CRASH_POINTS] },
  { layer: 'the crash points', files: /^src\/crashPoints\.ts$/, may: [] },
  { layer: 'the encoding of gRPC', files: /^src\/grpc\//, may: [GRPC, NODE] },
  { layer: 'fairness', files: /^src\/fairness\//, may: [FAIRNESS, PORTS, NODE] },
  { layer: 'the schema', files: /^src\/schema\//, may: ['src/schema/.+', PORTS, NODE] },
  { layer: 'the clock and randomness', files: /^src\/clockAndRandomness\.ts$/, may: [PORTS, CRASH_POINTS, NODE] },
  { layer: 'the clean-up', files: /^src\/cleanupStack\.ts$/, may: [PORTS] },
  { layer: 'revalidation', files: /^src\/staleWhileRevalidate\.ts$/, may: [CURRENT_ACCOUNT] },
  { layer: 'the startup error', files: /^src\/startupError\.ts$/, may: [] },
  {
    layer: 'the values of settings',
    files: /^src\/configValues\.ts$/,
    may: ['zod', PORTS, LIMITS, APPROVAL_POLICY, STARTUP_ERROR, NODE],
  },
  {
    layer: 'the insecure settings',
    files: /^src\/insecureSettings\.ts$/,
    may: [STARTUP_ERROR, NODE],
  },
  {
    layer: 'the configuration',
    files: /^src\/(config|settings)\.ts$/,
    may: [
      'zod',
      PORTS,
      CRASH_POINTS,
      STARTUP_ERROR,
      'src/(configValues|insecureSettings|settings|unknownSettings)\\.ts',
      APPROVAL_POLICY,
      IDEMPOTENCY_RETENTION,
      LIMITS,
      NODE,
    ],
  },
  { layer: 'the unknown settings', files: /^src\/unknownSettings\.ts$/, may: [] },
  { layer: 'the limits', files: /^src\/limits\.ts$/, may: [PORTS] },
  { layer: 'the retention of topics', files: /^src\/topicRetention\.ts$/, may: [] },
  {
    layer: 'the file of addresses',
    files: /^src\/addressesFile\.ts$/,
    may: ['zod', 'src/embedded/dataDirectory\\.ts', NODE],
  },
  { layer: 'retries of requests', files: /^src\/retryAfter\.ts$/, may: ['src/requestedPause\\.ts', NODE] },
  { layer: 'the pauses that servers request', files: /^src\/requestedPause\.ts$/, may: [] },
  { layer: 'the metrics', files: /^src\/metrics\.ts$/, may: [TELEMETRY_API] },
  { layer: 'the redaction', files: /^src\/redaction\.ts$/, may: [] },
  { layer: 'telemetry', files: /^src\/telemetry\.ts$/, may: ['@opentelemetry/[a-z-]+', NODE] },
  {
    layer: 'the evidence',
    files: /^src\/evidence\//,
    may: ['src/evidence/.+', 'src/commands/identifiers\\.ts', PORTS, SCHEMA, 'zod', NODE],
  },
  {
    layer: 'commands',
    files: /^src\/commands\//,
    may: [
      ...STREAMS,
      ...PROJECTIONS,
      PORTS,
      SCHEMA,
      FAIRNESS,
      'src/commands/.+',
      REVALIDATION,
      CURRENT_ACCOUNT,
      'zod',
      'lru-cache',
      'node:crypto',
      TELEMETRY_API,
    ],
  },
  {
    layer: 'feeds',
    files: /^src\/feeds\//,
    may: [
      ...STREAMS,
      ...PROJECTIONS,
      PORTS,
      SCHEMA,
      'src/feeds/.+',
      STORED_EVENTS,
      'src/commands/identifiers\\.ts',
      ACCOUNT_CODES,
      TOPIC_RETENTION,
      'node:fs/promises',
      TELEMETRY_API,
    ],
  },
  {
    layer: 'processes',
    files: /^src\/processes\//,
    may: [
      ...STREAMS,
      ...PROJECTIONS,
      PORTS,
      TOPIC_RETENTION,
      'src/(processes|commands|feeds|evidence)/.+',
      TELEMETRY_API,
    ],
  },
  ...HTTP_ROOMS.map((room, index) => ({
    layer: `http/${room}`,
    files: new RegExp(`^src/http/${room}`),
    may: [`src/http/(${HTTP_ROOMS.slice(0, index + 1).join('|')}).*`, ...OUTSIDE_HTTP],
  })),
  {
    layer: 'identity',
    files: /^src\/identity\//,
    may: [
      ...STREAMS,
      PORTS,
      SCHEMA,
      'src/(identity/.+|retryAfter\\.ts)',
      STARTUP_ERROR,
      REVALIDATION,
      'zod',
      'lru-cache',
      'p-limit',
      'jsonwebtoken',
      'jwks-rsa',
      'jose',
      NODE,
      TELEMETRY_API,
    ],
  },
  ...(
    [
      // The messages of the store use protobuf's own well-known types.
      ['eventstoredb', `(@eventstore/db-client|@grpc/grpc-js|google-protobuf|lru-cache|${GRPC})`],
      ['kafka', `(kafkajs|${TELEMETRY_API})`],
      ['postgres', `(pg|lru-cache|${FAIRNESS})`],
      ['files', 'hyparquet-writer'],
      ['rateLimiter', `(rate-limiter-flexible|lru-cache|${CURRENT_ACCOUNT})`],
    ] as const
  ).map(([folder, vendor]) => ({
    layer: `the adapter ${folder}`,
    files: new RegExp(`^src/adapters/${folder}/\\w+\\.ts$`),
    may: [PORTS, SCHEMA, 'projections/exactAmounts\\.ts', `src/adapters/${folder}/\\w+\\.ts`, vendor, NODE],
    mayTypes: [...STREAMS, ...PROJECTIONS],
  })),
  {
    layer: 'the embedded services',
    files: /^src\/embedded\//,
    // The issuer writes the claims that src/identity reads, so their names are shared.
    may: [
      'src/embedded/.+',
      GRPC,
      SCHEMA,
      'src/identity/(principal|revocations)\\.ts',
      STARTUP_ERROR,
      '(?!src/|streams/|projections/|express$|kafkajs$).+',
    ],
    // The issuer keeps its records in a database that is passed to it.
    mayTypes: [PORTS],
  },
  {
    layer: 'the composition',
    files: /^src\/(compose\/\w+|cluster\/\w+|compose|main)\.ts$/,
    may: ['src/.+', 'streams/.+', 'projections/.+', '.+'],
  },
  { layer: 'the benchmarks', files: /^scripts\/bench\//, may: ['(?!test/).+'] },
  { layer: 'the published client', files: /^scripts\/client\/src\//, may: ['scripts/client/src/.+'] },
  {
    layer: 'the generator of the client',
    files: /^scripts\/client\/generate\.ts$/,
    may: ['src/http/(contract/openapi|index)\\.ts', 'swagger-typescript-api', NODE],
  },
  {
    layer: 'the contract',
    files: /^scripts\/contract(\.ts$|\/)/,
    may: [
      'src/http/(contract/openapi|contract/asyncapi|index)\\.ts',
      'scripts/contract/.+',
      'commander',
      '@stoplight/spectral-[a-z]+',
      '@asyncapi/parser',
      NODE,
    ],
  },
  {
    layer: 'scripts',
    files: /^scripts\//,
    may: [
      'src/(compose|config|insecureSettings|addressesFile|ports|redaction|startupError|clockAndRandomness|cleanupStack|retryAfter|requestedPause|compose/signingKey)\\.ts|src/(adapters|embedded|identity|commands|evidence)/.+',
      'src/schema/(locks|existingRelations)\\.ts|scripts/.+|(?!src/|test/).+',
      'src/feeds/(checkpoints|lag|parkedEvents|booksWriter|decode|rebuild/(catchUp|rebuildable|requests))\\.ts',
      STORED_EVENTS,
      'src/http/(versions/(index|releases)|resources/commonSchemas)\\.ts',
    ],
  },
  { layer: 'tests', files: /^test\//, may: ['.+'] },
]

const isCovered = (patterns: readonly string[], target: string, own: string): boolean =>
  patterns.some(pattern => new RegExp(`^(?:${pattern.replaceAll('$1', own)})$`).test(target))

const mayImport = (rule: ImportRule, path: string, { target, typeOnly }: Import): boolean => {
  const own = rule.files.exec(path)?.[1] ?? ''
  return isCovered(rule.may, target, own) || (typeOnly && isCovered(rule.mayTypes ?? [], target, own))
}

/** Every import that the table does not permit, and every file that has no row. */
export const importViolations = (source: Source): string[] => {
  const rule = importRules.find(({ files }) => files.test(source.path))
  if (rule === undefined) return ['belongs to no row of the import table']
  return importsOf(source)
    .filter(found => !mayImport(rule, source.path, found))
    .map(({ specifier }) => `${rule.layer} may not import ${specifier}`)
}
