import { Command, Option } from 'commander'
import { MANIFEST_TOPICS } from '../../projections/factTopics.ts'
import { MANIFESTS_TOPIC } from '../../src/commands/manifests.ts'
import { SCOPE_OF } from '../../src/identity/resourceScopes.ts'
import { secretIn } from '../../src/settings/secretFiles.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { TOKEN_SETTING, tokensOf } from './apiClient.ts'
import { type Api, createApi } from './consume/api.ts'
import { type Copy, emptyCopy, openCopy, readState } from './consume/copy.ts'
import { consumeHttp } from './consume/http.ts'
import { consumeKafka } from './consume/kafka.ts'
import type { Entry } from './consume/fact.ts'
import { type TopicProof, type Verified, verifyByManifests, verifyOverHttp } from './consume/verify.ts'
import { findConnections, howToStart } from './connections.ts'
import { commandLine, interruptible } from './interruption.ts'
import { counted, jsonOption, print, printJson, printNotice } from './print.ts'
import { progressFor } from './progress.ts'
import { printTable } from './table.ts'

type Common = { readonly copy: string; readonly api?: string; readonly tenant?: string; readonly json: boolean }
type Options = Common & {
  readonly from: 'http' | 'kafka'
  readonly topic?: string[]
  readonly follow: boolean
  readonly repair: boolean
}

const SUBJECT = 'ledger-consume'
/** All that GET /events has: without the scope of its resource, a type is left out. */
const SCOPES = ['events:read', ...Object.values(SCOPE_OF)]
const RETRY_MAX_MS = 60_000

const tokensFor = async (tenant: string | undefined): Promise<() => Promise<string>> => {
  if (tenant === undefined && secretIn(process.env, TOKEN_SETTING) === undefined)
    throw new StartupError(
      `Name the tenant with --tenant for a token of the embedded issuer, or put a token of your own into ${TOKEN_SETTING}.`,
    )
  return tokensOf({ ...(tenant !== undefined && { tenant }), subject: SUBJECT }, SCOPES)
}

const openApi = async ({ api, tenant }: Common, signal: AbortSignal, retryMaxMs: number): Promise<Api> => {
  const { config, addresses } = await findConnections(api)
  if (addresses.api === null) throw new StartupError(howToStart(config.dataDir))
  return createApi({ api: addresses.api, token: await tokensFor(tenant), signal, retryMaxMs })
}

const summaryOf = ({ counts: { taken, repeated, late }, state }: Copy): string => {
  const place = state().from === 'http' ? `, up to position ${state().position}` : ''
  const disorder = late === 0 ? '' : `, ${late} behind a later one of their key`
  return `${counted(taken, 'new fact')}, ${repeated} already present${disorder}${place}`
}

const printConsumed = (copy: Copy, folder: string, json: boolean): void => {
  const { from, topics, position } = copy.state()
  if (json) printJson({ copy: folder, from, topics, position: from === 'http' ? position : null, ...copy.counts })
  else print(`${summaryOf(copy)}, in ${folder}`)
}

const describe = ({ type, subject, position, id, tenantid }: Entry): string =>
  `${type} for ${subject} at position ${position}, tenant ${tenantid}, id ${id}`

const cellsOf = ({ ranges, topic, unproved, ...proof }: TopicProof): readonly string[] => {
  const had = ranges.reduce((sum, range) => sum + range.had.count, 0)
  const total = ranges.reduce((sum, range) => sum + range.wanted.count, 0)
  const isSound = ranges.every(({ agrees }) => agrees) && proof.findings.length === 0
  const from = ranges[0]?.from ?? 0n
  const to = ranges.at(-1)?.to ?? 0n
  const sealed = ranges.length > 1 ? ` in ${ranges.length} manifests` : ''
  const beside = unproved === 0 ? '' : `, ${unproved} beside them not proved`
  return [isSound ? 'ok' : 'FINDING', topic, `${had} of ${total}`, `positions ${from} to ${to}${sealed}${beside}`]
}

const printProblems = ({ topic, ranges, missing, surplus, findings }: TopicProof): void => {
  for (const finding of findings) print(`${topic}: ${finding}`)
  for (const { from, to, had, wanted } of ranges.filter(({ agrees }) => !agrees))
    print(
      `${topic}: the ledger has ${counted(wanted.count, 'fact')} at positions ${from} to ${to} (SHA-256 ${wanted.sha256}), and the copy ${had.count}.`,
    )
  for (const entry of missing) print(`missing: ${describe(entry)}`)
  for (const entry of surplus) print(`surplus (${entry.why}): ${describe(entry)}`)
}

const printVerified = (verified: Verified, json: boolean): void => {
  if (json) return printJson(verified)
  printTable(verified.topics.map(cellsOf))
  for (const proof of verified.topics) printProblems(proof)
  print(verified.ok ? 'The copy is complete.' : 'The copy is incomplete.')
}

type Reading = { readonly copy: Copy; readonly signal: AbortSignal; readonly onProgress: () => void }

const overHttp = async (options: Options, reading: Reading): Promise<void> => {
  const { follow } = options
  const api = await openApi(options, reading.signal, follow ? Number.POSITIVE_INFINITY : RETRY_MAX_MS)
  const onExpiredCursor = (): void => {
    printNotice(
      'The cursor of the last run had expired. Facts before it that were delivered late since are not in the copy: ' +
        `npm run ledger -- consume verify --copy ${options.copy} names them.`,
    )
    process.exitCode = 1
  }
  await consumeHttp({ api, follow, onExpiredCursor, ...reading })
}

const fromKafka = async ({ follow }: Options, reading: Reading): Promise<void> => {
  const { config, addresses } = await findConnections()
  if (addresses.kafka === null) throw noBroker()
  const kafka = { ...config.kafka, brokers: addresses.kafka.split(',') }
  await consumeKafka({ kafka, follow, ...reading })
}

const noBroker = (): StartupError =>
  new StartupError(
    'The service publishes to no Kafka broker. Use --from http; or start a broker (npm run kafka), restart the service with ' +
      'KAFKA_BROKERS=127.0.0.1:9092, and repeat this command.',
  )

const topicsOf = ({ from, topic }: Options): readonly string[] | undefined => {
  const stray = topic?.find(name => !MANIFEST_TOPICS.includes(name))
  if (stray !== undefined)
    throw new StartupError(`There is no topic ${JSON.stringify(stray)}: ${MANIFEST_TOPICS.join(', ')}.`)
  // The manifests are needed to verify the copy.
  return topic && (from === 'kafka' ? [...topic, MANIFESTS_TOPIC] : topic)
}

/** Reads into the copy. Resolves when it is complete or, with --follow, was stopped, which is its only end. */
const read = async (options: Options, copy: Copy, signal: AbortSignal): Promise<true> => {
  const progress = progressFor(options)(options.copy, 'new facts')
  const onProgress = (): void => progress.update(copy.counts.taken)
  try {
    await (options.from === 'http' ? overHttp : fromKafka)(options, { copy, signal, onProgress })
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    progress.end()
  }
  if (!options.follow) signal.throwIfAborted()
  return true
}

/** Copies anew what is not complete. Resolves to false when it was interrupted. */
const repair = async (options: Options): Promise<boolean> => {
  const verified = await interruptible(signal => verifyCopy(options, signal))
  if (verified === undefined) return false
  if (verified.ok) printNotice('The copy is complete up to its position.')
  else {
    printNotice('The copy is incomplete: copying every fact again.')
    await emptyCopy(options.copy)
  }
  return true
}

const consume = async (options: Options): Promise<void> => {
  const { from, copy: folder } = options
  if (options.repair && !(await repair(options))) return
  if (from === 'kafka' && (await findConnections()).addresses.kafka === null) throw noBroker()
  const all = from === 'kafka' ? [...MANIFEST_TOPICS, MANIFESTS_TOPIC] : MANIFEST_TOPICS
  const copy = await openCopy(folder, { from, topics: topicsOf(options) }, all)
  try {
    if ((await interruptible(signal => read(options, copy, signal))) === undefined) return
  } finally {
    await copy.close()
  }
  printConsumed(copy, folder, options.json)
  if (copy.counts.late > 0) process.exitCode = 1
}

const verifyCopy = async (options: Common, signal: AbortSignal): Promise<Verified> => {
  const { copy: folder, tenant } = options
  const state = await readState(folder)
  const api = (): Promise<Api> => openApi(options, signal, RETRY_MAX_MS)
  const ownFacts = async () => (tenant === undefined ? undefined : { api: await api(), tenant })
  if (state.from === 'http') return verifyOverHttp(folder, state, await api())
  return verifyByManifests(folder, state, await ownFacts())
}

const remedyOf = async ({ copy, tenant }: Common): Promise<string> => {
  if ((await readState(copy)).from === 'kafka')
    return `To repair it, delete ${copy} and consume from Kafka again, while the topics still have the facts.`
  const ofTenant = tenant === undefined ? [] : ['--tenant', tenant]
  return `To repair it, run: ${commandLine(['consume', '--copy', copy, ...ofTenant, '--repair'])}`
}

const verify = async (options: Common): Promise<void> => {
  const verified = await interruptible(signal => verifyCopy(options, signal))
  if (verified === undefined) return
  printVerified(verified, options.json)
  if (!verified.ok && !options.json) print(await remedyOf(options))
  process.exitCode = verified.ok ? 0 : 1
}

const COPY = '--copy <folder>'
const COPY_IS = 'the folder of the copy: a JSON lines file for each topic, and a file with the progress'

const common = (command: Command): Command =>
  command
    .option(
      '--tenant <tenant>',
      `read with a token of the embedded issuer for this tenant; else with the token in ${TOKEN_SETTING}`,
    )
    .option('--api <url>', 'the address of the service; by default that of LEDGER_DATA_DIR')

const verifyCommand = common(new Command('verify').requiredOption(COPY, COPY_IS))
  .description('Proves by count and hash that a copy has every fact, and names missing and surplus facts.')
  .addOption(jsonOption('print JSON: {ok, topics: [{topic, ranges, missing, surplus, findings, unproved}]}'))
  .addHelpText(
    'after',
    '\nA copy made over HTTP is compared with GET /events/manifest. Where count or hash differ, the range is halved until\n' +
      'it is small enough to be listed. A copy from Kafka is compared with the manifests that were read with it, which count\n' +
      'the facts of all tenants; with --tenant, the missing facts of that tenant are listed. The proof concerns the ids of\n' +
      'the facts, not their content. Exit code 1 if the copy is not complete.',
  )
  .action(verify)

// Not a required option of commander, which would require it before the word `verify` too.
export const consumeCommand = common(new Command('consume').option(COPY, COPY_IS))
  .description(
    'Copies the published facts into a folder, each once and in order per key, from where the last run ended.',
  )
  .enablePositionalOptions()
  .addOption(new Option('--from <source>', 'the source of the facts').choices(['http', 'kafka']).default('http'))
  .option('--topic <topic...>', 'only the facts of these topics, such as ledger.invoice.v1')
  .option('--repair', 'verify the copy first, and copy every fact anew if it is not complete (HTTP)', false)
  .option('--follow', 'continue with new facts until Ctrl-C', false)
  .addOption(jsonOption('print JSON at the end: {copy, from, topics, position, taken, repeated, late}'))
  .addHelpText(
    'after',
    '\nOver HTTP the facts are those of one tenant, from Kafka (KAFKA_BROKERS) those of all. The progress is stored after the\n' +
      'facts: a run that is killed at any moment is continued without a gap, and repeated facts are recognized by source and\n' +
      'id. After more than three days without a run, the facts that were delivered late meanwhile are not read; the command\n' +
      'says so, and verify names them. The implementation is an example: scripts/ledger/consume/copy.ts, http.ts, kafka.ts.',
  )
  .addCommand(verifyCommand)
  .action(async (options: Omit<Options, 'copy'> & Partial<Options>, command: Command) => {
    if (options.copy === undefined) return command.error(`error: required option '${COPY}' not specified`)
    await consume({ ...options, copy: options.copy })
  })
