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
/** Ids, stored events, time, errors and clean-up: used everywhere outside the pure layers. */
const LIB = 'src/lib/\\w+\\.ts'
const SETTINGS = 'src/settings/\\w+\\.ts'
/** The promises of the settings that the code behind them keeps: budgets of time, limits and retention. */
const PROMISES = 'src/settings/(limits|retention|timeBudgets)\\.ts'

/** The encoding of gRPC messages, shared by the client and the embedded server. */
const GRPC = 'src/grpc/\\w+\\.ts'

/** The limits and turns of tenants and their callers. */
const FAIRNESS = 'src/fairness/\\w+\\.ts'

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
  'src/(identity|commands|personalTexts|evidence)/.+',
  // A list states the position up to which it is projected; operators see the lag of read models, and rebuild
  // them; subscribers decide on their dead letters.
  'src/feeds/(accountCodes|checkpoints|deadLetters|lag|rebuild/requests)\\.ts',
  // The content of an export is read where its process wrote it.
  'src/processes/exports/export(Erasures|Files)\\.ts',
  ...STREAMS,
  ...PROJECTIONS,
  LIB,
  PROMISES,
  PORTS,
  FAIRNESS,
  NODE,
  'express|zod|zod-openapi|jose|lru-cache|p-limit',
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
  { layer: 'the ports', files: /^src\/ports\.ts$/, may: [], mayTypes: [...STREAMS, ...PROJECTIONS, LIB] },
  { layer: 'lib', files: /^src\/lib\//, may: [LIB, ...STREAMS, PORTS, FAIRNESS, 'zod', TELEMETRY_API, NODE] },
  { layer: 'the encoding of gRPC', files: /^src\/grpc\//, may: [GRPC, NODE] },
  { layer: 'fairness', files: /^src\/fairness\//, may: [FAIRNESS, PORTS, NODE] },
  { layer: 'the schema', files: /^src\/schema\//, may: ['src/schema/.+', PORTS, NODE] },
  {
    layer: 'the settings',
    files: /^src\/settings\//,
    // The amounts of the approval policy are a setting.
    may: [SETTINGS, LIB, PORTS, 'src/identity/(approvalPolicy|principal)\\.ts', 'zod', NODE],
  },
  { layer: 'telemetry', files: /^src\/telemetry\.ts$/, may: ['@opentelemetry/[a-z-]+', NODE] },
  { layer: 'the evidence', files: /^src\/evidence\//, may: ['src/evidence/.+', LIB, PORTS, SCHEMA, 'zod', NODE] },
  {
    layer: 'the identity of the log',
    files: /^src\/logIdentity\//,
    may: ['src/logIdentity/.+', ...STREAMS, ...PROJECTIONS, LIB, PORTS, SCHEMA],
  },
  {
    layer: 'commands',
    files: /^src\/commands\//,
    may: [
      'src/(commands|logIdentity)/.+',
      ...STREAMS,
      ...PROJECTIONS,
      LIB,
      PROMISES,
      PORTS,
      SCHEMA,
      FAIRNESS,
      'lru-cache',
      NODE,
    ],
  },
  {
    layer: 'personal texts',
    files: /^src\/personalTexts\//,
    may: ['src/(personalTexts|commands)/.+', ...STREAMS, ...PROJECTIONS, LIB, PORTS, FAIRNESS, 'lru-cache'],
  },
  {
    layer: 'feeds',
    files: /^src\/feeds\//,
    may: ['src/feeds/.+', ...STREAMS, ...PROJECTIONS, LIB, PROMISES, PORTS, SCHEMA, NODE, TELEMETRY_API],
  },
  {
    layer: 'processes',
    files: /^src\/processes\//,
    may: [
      'src/(processes|commands|logIdentity|personalTexts|feeds|evidence)/.+',
      ...STREAMS,
      ...PROJECTIONS,
      LIB,
      PROMISES,
      PORTS,
      SCHEMA,
      NODE,
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
      'src/identity/.+',
      ...STREAMS,
      LIB,
      PORTS,
      SCHEMA,
      NODE,
      'zod|lru-cache|p-limit|jsonwebtoken|jwks-rsa|jose',
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
      ['rateLimiter', `(rate-limiter-flexible|lru-cache|${FAIRNESS})`],
    ] as const
  ).map(([folder, vendor]) => ({
    layer: `the adapter ${folder}`,
    files: new RegExp(`^src/adapters/${folder}/\\w+\\.ts$`),
    may: [LIB, PORTS, SCHEMA, 'projections/exactAmounts\\.ts', `src/adapters/${folder}/\\w+\\.ts`, vendor, NODE],
    mayTypes: [...STREAMS, ...PROJECTIONS],
  })),
  { layer: 'the child processes', files: /^src\/childProcesses\//, may: ['src/childProcesses/.+', LIB, NODE] },
  {
    layer: 'the embedded services',
    files: /^src\/embedded\//,
    // The issuer writes the claims that src/identity reads, so their names are shared.
    may: [
      'src/(embedded|childProcesses)/.+',
      GRPC,
      SCHEMA,
      'src/identity/(principal|revocations)\\.ts',
      LIB,
      '(?!src/|streams/|projections/|express$|kafkajs$).+',
    ],
    // The tables of src/schema are made in a database that is passed to them.
    mayTypes: [PORTS],
  },
  {
    layer: 'the console',
    files: /^src\/console\//,
    // A client of the published API alone: of the service it has the types of the contract.
    may: ['src/console/.+', 'lit|@lit/task|uplot|oauth4webapi'],
    mayTypes: ['scripts/client/src/generated\\.ts'],
  },
  {
    layer: 'the composition',
    files: /^src\/(compose\/\w+|cluster\/\w+|main)\.ts$/,
    may: ['src/.+', 'streams/.+', 'projections/.+', '.+'],
  },
  { layer: 'the benchmarks', files: /^scripts\/bench\//, may: ['(?!test/).+'] },
  {
    layer: 'the published client',
    files: /^scripts\/client\/src\//,
    may: ['scripts/client/src/.+', 'src/lib/requestedPause\\.ts'],
  },
  {
    layer: 'the generator of the client',
    files: /^scripts\/client\/generate\.ts$/,
    may: ['src/http/(contract/openapi|index)\\.ts', NODE],
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
      'src/(ports|compose/(addressesFile|processRecord|signingKey))\\.ts|src/(adapters|embedded|childProcesses|identity|commands|personalTexts|logIdentity|evidence)/.+',
      LIB,
      SETTINGS,
      'src/schema/(locks|existingRelations)\\.ts|scripts/.+|(?!src/|test/).+',
      'src/feeds/(checkpoints|lag|deadLetters|booksWriter|decode|rebuild/(catchUp|rebuildable|requests))\\.ts',
      'src/http/(versions/(index|releases|apiVersion(Retirement|Usage))|resources/commonSchemas)\\.ts',
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
    .filter(actual => !mayImport(rule, source.path, actual))
    .map(({ specifier }) => `${rule.layer} may not import ${specifier}`)
}
