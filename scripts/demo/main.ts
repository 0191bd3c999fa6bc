import { Command, InvalidArgumentError } from 'commander'
import { type Config, readConfig } from '../../src/settings/config.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { EffectUnknownError, LedgerError, NoAnswerError } from '../client/src/index.ts'
import { identitiesOf, requireEmbeddedIssuer, TENANT } from './identities.ts'
import { runDemo } from './run.ts'
import type { Identities } from './planExecution.ts'
import { type PlannedInvoice, planOf } from './plan.ts'
import { printLine, printNextSteps, printResults, printAddresses } from './output.ts'
import { findOrStart } from './service.ts'
import { sources } from './sources.ts'
import { stopSignal } from './stopSignal.ts'

type Options = { readonly keep: boolean; readonly limit?: number; readonly api?: string }

const INVOICES_MAX = 412
const PORT_DEFAULT = 8080

const invoiceCount = (text: string): number => {
  const count = Number(text)
  if (/^\d{1,3}$/.test(text) && count >= 1 && count <= INVOICES_MAX) return count
  throw new InvalidArgumentError(`A number from 1 to ${INVOICES_MAX}.`)
}

const baseUrl = (text: string): string => {
  if (URL.canParse(text) && /^https?:/.test(text)) return text.replace(/\/$/, '')
  throw new InvalidArgumentError('A URL such as http://127.0.0.1:8080.')
}

const readOptions = (): Options =>
  new Command('demo')
    .description(
      'Sends the invoices of the Chinook sample database through the API: orders, invoices, approvals, ' +
        'payments, retries on purpose. Then compares what was planned with what the lists and the published facts say.',
    )
    .option('--keep', 'leave the service running afterwards', false)
    .option('--limit <count>', 'send only this number of invoices', invoiceCount)
    .option(
      '--api <url>',
      'use the service at this address; LEDGER_DATA_DIR has the key of its issuer, OIDC_ISSUER',
      baseUrl,
    )
    .addHelpText(
      'after',
      '\nUses the service of LEDGER_DATA_DIR (.data) if it runs; else starts it, on PORT or any free one, and stops\n' +
        'it again. A second run sends the same keys, so nothing is paid again.\n' +
        'Exit code 1 when any sum is not as expected.',
    )
    .parse()
    .opts<Options>()

const seconds = (fromMs: number): string => `${((performance.now() - fromMs) / 1_000).toFixed(1)} s`

/** Resolves to true when every sum is as planned. */
const reconciled = async (callers: Identities, plan: readonly PlannedInvoice[], startedAtMs: number) => {
  const runFromMs = performance.now()
  const results = await runDemo(callers, plan)
  const wrong = printResults(results)
  for (const sentence of wrong) process.stderr.write(`${sentence}\n`)
  printLine(`took ${seconds(runFromMs)}, ${seconds(startedAtMs)} with the start`)
  printLine()
  return { results, isBalanced: wrong.length === 0 }
}

/** With a service elsewhere, of which only the address is known. */
const demoAt = async (api: string, config: Config, plan: readonly PlannedInvoice[], signal: AbortSignal) => {
  const callers = identitiesOf(config, { api, issuer: config.issuer ?? `${api}/oauth` }, signal)
  return (await reconciled(callers, plan, performance.now())).isBalanced
}

/** With the service of the data directory, which is started unless it runs. */
const demoHere = async (config: Config, plan: readonly PlannedInvoice[], options: Options, signal: AbortSignal) => {
  const startedAtMs = performance.now()
  // A service that ends with the demo needs no known port.
  const port = options.keep || config.port !== PORT_DEFAULT ? config.port : 0
  const onStarting = (): void => printLine(`No service is running on ${config.dataDir}; starting one.`)
  const service = await findOrStart(config, { port, signal, onStarting })
  const stays = (): boolean => !service.startedHere || (options.keep && !signal.aborted)
  try {
    requireEmbeddedIssuer(service.addresses)
    printAddresses(service, config)
    const { results, isBalanced } = await reconciled(identitiesOf(config, service.addresses, signal), plan, startedAtMs)
    if (stays()) printNextSteps(service, config, results)
    else printLine('The service ends with the demo. To look around in what it made: npm run demo -- --keep')
    return isBalanced
  } finally {
    if (!stays()) await service.stop()
  }
}

const demo = async (config: Config, options: Options, signal: AbortSignal): Promise<boolean> => {
  const plan = planOf(sources.slice(0, options.limit))
  printLine(`The invoices of a music shop, ${plan.length} of them, as the tenant ${TENANT}.`)
  if (options.api === undefined) return demoHere(config, plan, options, signal)
  return demoAt(options.api, config, plan, signal)
}

/** Errors that are printed as a sentence; others are bugs and keep their stack. */
const SENTENCES = [StartupError, LedgerError, NoAnswerError, EffectUnknownError]

const messageOf = (error: unknown): string => {
  if (error instanceof Error && SENTENCES.some(kind => error instanceof kind)) return error.message
  return error instanceof Error ? String(error.stack) : String(error)
}

const options = readOptions()
const signal = stopSignal()
try {
  const balanced = await demo(readConfig(), options, signal)
  process.exitCode = balanced ? 0 : 1
} catch (error) {
  if (!signal.aborted) process.stderr.write(`${messageOf(error)}\n`)
  process.exitCode = 1
}
// Open handles, such as keep-alive connections, must not delay the exit.
process.exit(signal.aborted ? Number(signal.reason) : process.exitCode)
