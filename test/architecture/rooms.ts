import type { Import, Source } from './source.ts'
import { importsOf } from './source.ts'

/** The import rules, a row for each layer. A file that belongs to no row is in the wrong place. */

type Room = {
  readonly name: string
  readonly files: RegExp
  /** Targets that a file of this room may import; `$1` stands for the first group of `files`. */
  readonly may: readonly string[]
  /** Targets of which it may import types alone. */
  readonly mayTypes?: readonly string[]
}

/** Streams by their doors: the shared files, and the index of an aggregate. */
const STREAMS = ['streams/[^/]+\\.ts', 'streams/[^/]+/index\\.ts']
const PROJECTIONS = ['projections/.+']
const NODE = 'node:[a-z_/]+'
const PORTS = 'src/ports\\.ts'
const TELEMETRY_API = '@opentelemetry/api'
/** The error that ends a process with one sentence in place of a stack. */
const STARTUP_ERROR = 'src/startupError\\.ts'
/** The stored form of an event: what writes it and what reads it must agree. */
const RECORDED = 'src/commands/recorded\\.ts'

export const rooms: readonly Room[] = [
  { name: 'the list of aggregates', files: /^streams\/index\.ts$/, may: ['streams/[^/]+/index\\.ts'] },
  {
    name: 'what aggregates share',
    files: /^streams\/[^/]+\.ts$/,
    may: ['zod', 'streams/(?!index\\.ts)[^/]+\\.ts'],
  },
  {
    name: 'an aggregate',
    files: /^streams\/([^/]+)\/[^/]+\.ts$/,
    may: ['zod', 'streams/(?!index\\.ts)[^/]+\\.ts', 'streams/$1/[^/]+\\.ts'],
  },
  { name: 'projections', files: /^projections\//, may: ['zod', ...STREAMS, ...PROJECTIONS], mayTypes: ['pg'] },
  { name: 'the ports', files: /^src\/ports\.ts$/, may: [], mayTypes: [...STREAMS, ...PROJECTIONS] },
  { name: 'the world', files: /^src\/world\.ts$/, may: [PORTS, NODE] },
  { name: 'the releasers', files: /^src\/releasers\.ts$/, may: [PORTS] },
  { name: 'the startup error', files: /^src\/startupError\.ts$/, may: [] },
  { name: 'the values of settings', files: /^src\/configValues\.ts$/, may: ['zod', PORTS, NODE] },
  {
    name: 'the configuration',
    files: /^src\/config\.ts$/,
    may: ['zod', PORTS, STARTUP_ERROR, 'src/configValues\\.ts', NODE],
  },
  { name: 'the addresses', files: /^src\/addresses\.ts$/, may: ['zod', NODE] },
  { name: 'retries of requests', files: /^src\/retryAfter\.ts$/, may: [NODE] },
  { name: 'telemetry', files: /^src\/telemetry\.ts$/, may: ['@opentelemetry/[a-z-]+', NODE] },
  {
    name: 'commands',
    files: /^src\/commands\//,
    may: [...STREAMS, ...PROJECTIONS, PORTS, 'src/commands/.+', 'zod', 'lru-cache', 'node:crypto', TELEMETRY_API],
  },
  {
    name: 'feeds',
    files: /^src\/feeds\//,
    may: [...STREAMS, ...PROJECTIONS, PORTS, 'src/feeds/.+', RECORDED, 'node:fs/promises', TELEMETRY_API],
  },
  {
    name: 'processes',
    files: /^src\/processes\//,
    may: [...STREAMS, ...PROJECTIONS, PORTS, 'src/(processes|commands|feeds)/.+', TELEMETRY_API],
  },
  {
    name: 'http',
    files: /^src\/http\//,
    // Of the feeds only how far they have got: a list says what it is as of.
    may: [
      'src/(http|identity|commands)/.+|src/feeds/checkpoints\\.ts|express|zod|zod-openapi|jose|p-limit',
      ...STREAMS,
      ...PROJECTIONS,
      PORTS,
      NODE,
      TELEMETRY_API,
    ],
  },
  {
    name: 'identity',
    files: /^src\/identity\//,
    may: [
      ...STREAMS,
      PORTS,
      'src/(identity/.+|retryAfter\\.ts)',
      STARTUP_ERROR,
      'zod',
      'lru-cache',
      'jsonwebtoken',
      'jwks-rsa',
      'jose',
      NODE,
      TELEMETRY_API,
    ],
  },
  ...(
    [
      // The store's messages are made of the types that protobuf itself brings along.
      ['eventstoredb', '(@eventstore/db-client|google-protobuf)'],
      ['kafka', 'kafkajs'],
      ['postgres', 'pg'],
      ['files', '(csv-stringify|hyparquet-writer)'],
      ['rateLimiter', 'rate-limiter-flexible'],
    ] as const
  ).map(([folder, vendor]) => ({
    name: `the adapter ${folder}`,
    files: new RegExp(`^src/adapters/${folder}/\\w+\\.ts$`),
    may: [PORTS, `src/adapters/${folder}/\\w+\\.ts`, vendor, NODE],
    mayTypes: [...STREAMS, ...PROJECTIONS],
  })),
  {
    name: 'the embedded parts',
    files: /^src\/embedded\//,
    // The issuer writes the claims that the identity room reads, so their names are shared.
    may: [
      'src/embedded/.+',
      'src/identity/(principal|revocations)\\.ts',
      STARTUP_ERROR,
      '(?!src/|streams/|projections/|express$|kafkajs$).+',
    ],
    // What the issuer remembers goes to the database that it is handed.
    mayTypes: [PORTS],
  },
  {
    name: 'the composition',
    files: /^src\/(compose\/\w+|compose|main)\.ts$/,
    may: ['src/.+', 'streams/.+', 'projections/.+', '.+'],
  },
  { name: 'the benchmarks', files: /^scripts\/bench\//, may: ['(?!test/).+'] },
  { name: 'the contract', files: /^scripts\/contract\.ts$/, may: ['src/http/(contract/openapi|endpoints)\\.ts'] },
  {
    name: 'scripts',
    files: /^scripts\//,
    may: [
      'src/(compose|config|addresses|ports|startupError|world|releasers|retryAfter)\\.ts|src/(adapters|embedded|identity|commands)/.+',
      'src/feeds/(checkpoints|deadLetters)\\.ts|scripts/.+|(?!src/|test/).+',
      RECORDED,
    ],
  },
  { name: 'tests', files: /^test\//, may: ['.+'] },
]

const isCovered = (patterns: readonly string[], target: string, own: string): boolean =>
  patterns.some(pattern => new RegExp(`^(?:${pattern.replaceAll('$1', own)})$`).test(target))

const mayImport = (room: Room, path: string, { target, typeOnly }: Import): boolean => {
  const own = room.files.exec(path)?.[1] ?? ''
  return isCovered(room.may, target, own) || (typeOnly && isCovered(room.mayTypes ?? [], target, own))
}

/** Every import that the table does not permit, and every file that has no row. */
export const importViolations = (source: Source): string[] => {
  const room = rooms.find(({ files }) => files.test(source.path))
  if (room === undefined) return ['belongs to no row of the import table']
  return importsOf(source)
    .filter(found => !mayImport(room, source.path, found))
    .map(({ specifier }) => `${room.name} may not import ${specifier}`)
}
