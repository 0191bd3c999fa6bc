import { Command, Option } from 'commander'
import { MANIFEST_TOPICS } from '../../projections/topicSettings.ts'
import { MANIFESTS_TOPIC } from '../../src/commands/manifests.ts'
import { mintDevToken } from '../../src/embedded/issuer/devToken.ts'
import { StartupError } from '../../src/startupError.ts'
import { renewing } from '../demo/tokens.ts'
import { type Api, createApi } from './consume/api.ts'
import { type Copy, openCopy, readState } from './consume/copy.ts'
import { consumeHttp } from './consume/http.ts'
import { consumeKafka } from './consume/kafka.ts'
import { progressOf, printConsumed, printVerified } from './consume/output.ts'
import { verifyByManifests, verifyOverHttp } from './consume/verify.ts'
import { TOKEN_SETTING } from './tokenOption.ts'
import { findConnections, howToStart } from './connections.ts'

/** `consume`: an example subscriber whose copy has every fact once, survives a kill at any moment, and can be verified. */

type Common = { readonly copy: string; readonly api?: string; readonly tenant?: string; readonly json: boolean }
type Options = Common & { readonly from: 'http' | 'kafka'; readonly topic?: string[]; readonly follow: boolean }

const SUBJECT = 'ledger-consume'
const RETRY_MAX_MS = 60_000

/** Aborts on SIGINT, SIGTERM and SIGHUP. A write in progress is completed first. */
const stopSignal = (): AbortSignal => {
  const stop = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => stop.abort())
  return stop.signal
}

/** The given token, or tokens of the embedded issuer, renewed as needed. */
const tokensFor = async (tenant: string | undefined): Promise<() => Promise<string>> => {
  const given = process.env[TOKEN_SETTING] ?? ''
  if (given !== '') return async () => given
  if (tenant === undefined)
    throw new StartupError(`Whose facts? --tenant for one of the embedded issuer, or a token in ${TOKEN_SETTING}.`)
  const { config, running } = await findConnections()
  const { dataDir, audience } = config
  const issuer = running?.issuer ?? `http://localhost:${config.port}/oauth`
  const grant = { dataDir, issuer, audience, tenant, subject: SUBJECT, scopes: ['events:read'], user: false }
  return renewing(() => mintDevToken(grant))
}

const openApi = async ({ api, tenant }: Common, signal: AbortSignal, retryMaxMs: number): Promise<Api> => {
  const { config, addresses } = await findConnections()
  const address = api ?? addresses.api
  if (address === null) throw new StartupError(howToStart(config.dataDir))
  return createApi({ api: address, token: await tokensFor(tenant), signal, retryMaxMs })
}

const overHttp = async (options: Options, copy: Copy, signal: AbortSignal): Promise<void> => {
  const { follow } = options
  const api = await openApi(options, signal, follow ? Number.POSITIVE_INFINITY : RETRY_MAX_MS)
  await consumeHttp({ api, copy, follow, signal, onProgress: progressOf(copy) })
}

const fromKafka = async ({ follow }: Options, copy: Copy, signal: AbortSignal): Promise<void> => {
  const { config, addresses } = await findConnections()
  if (addresses.kafka === null) throw new StartupError('No broker is known: set KAFKA_BROKERS.')
  const kafka = { ...config.kafka, brokers: addresses.kafka.split(',') }
  await consumeKafka({ kafka, copy, follow, signal, onProgress: progressOf(copy) })
}

const topicsOf = ({ from, topic }: Options): readonly string[] | undefined => {
  const stray = topic?.find(name => !MANIFEST_TOPICS.includes(name))
  if (stray !== undefined)
    throw new StartupError(`There is no topic ${JSON.stringify(stray)}: ${MANIFEST_TOPICS.join(', ')}.`)
  // The manifests are needed to verify the copy.
  return topic && (from === 'kafka' ? [...topic, MANIFESTS_TOPIC] : topic)
}

const consume = async (options: Options): Promise<void> => {
  const signal = stopSignal()
  const { from, copy: folder } = options
  const all = from === 'kafka' ? [...MANIFEST_TOPICS, MANIFESTS_TOPIC] : MANIFEST_TOPICS
  const copy = await openCopy(folder, { from, topics: topicsOf(options) }, all)
  try {
    await (from === 'http' ? overHttp : fromKafka)(options, copy, signal)
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    await copy.close()
  }
  printConsumed(copy, folder, options.json)
  if (copy.counts.late > 0) process.exitCode = 1
}

const verify = async (options: Common): Promise<void> => {
  const { copy: folder, tenant, json } = options
  const signal = stopSignal()
  const state = await readState(folder)
  const ownFacts = async () => (tenant === undefined ? undefined : { api: await api(), tenant })
  const api = (): Promise<Api> => openApi(options, signal, RETRY_MAX_MS)
  const verified =
    state.from === 'http'
      ? await verifyOverHttp(folder, state, await api())
      : await verifyByManifests(folder, state, await ownFacts())
  printVerified(verified, json)
  process.exitCode = verified.ok ? 0 : 1
}

const COPY = '--copy <folder>'
const COPY_IS = 'where the copy is kept: a file of lines for each topic, and how far it has come'

const common = (command: Command): Command =>
  command
    .option('--tenant <tenant>', `whose facts: a token of the embedded issuer is made; or put one in ${TOKEN_SETTING}`)
    .option('--api <url>', 'the service, when it is not that of LEDGER_DATA_DIR')

const verifyCommand = common(new Command('verify').requiredOption(COPY, COPY_IS))
  .description('Proves that a copy holds every fact, by count and hash; and names what is missing or surplus.')
  .option('--json', 'one JSON document: {ok, topics: [{topic, ranges, missing, surplus, findings, unproved}]}', false)
  .addHelpText(
    'after',
    '\nA copy made over HTTP is held against GET /events/manifest. Where count or hash differ, the range is halved until\n' +
      'it is small enough to be listed. A copy from Kafka is held against the manifests that were read with it, which are\n' +
      'of all tenants; with --tenant and its token, what that tenant lacks is named. The proof is of the ids: which facts,\n' +
      'not what they say. Exit code 1 when the copy is not complete.',
  )
  .action(verify)

// Not a required option of commander, which would require it before the word `verify` too.
export const consumeCommand = common(new Command('consume').option(COPY, COPY_IS))
  .description('Keeps a copy of the published facts: each once, in order per key, from where it stopped.')
  .enablePositionalOptions()
  .addOption(new Option('--from <source>', 'where the facts are read').choices(['http', 'kafka']).default('http'))
  .option('--topic <topic...>', 'of these topics alone, such as ledger.invoice.v1; all when none is named')
  .option('--follow', 'wait for what comes, until Ctrl-C', false)
  .option('--json', 'one JSON document at the end: {copy, from, topics, position, taken, repeated, late}', false)
  .addHelpText(
    'after',
    '\nOver HTTP these are the facts of one tenant, from Kafka (KAFKA_BROKERS) those of all. The place to go on from is\n' +
      'saved behind what was written: killed at any moment, it goes on without a gap, and what comes twice is dropped by\n' +
      'source and id. To read: scripts/ledger/consume/copy.ts, http.ts and kafka.ts.',
  )
  .addCommand(verifyCommand)
  .action(async (options: Omit<Options, 'copy'> & Partial<Options>, command: Command) => {
    if (options.copy === undefined) return command.error(`error: required option '${COPY}' not specified`)
    await consume({ ...options, copy: options.copy })
  })
