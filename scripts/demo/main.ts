import { readFile } from 'node:fs/promises'
import { constants } from 'node:os'
import { Command, InvalidArgumentError } from 'commander'
import { type Config, readConfig } from '../../src/settings/config.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { EffectUnknownError, LedgerError, NoAnswerError } from '../client/src/index.ts'
import { identitiesOf, TENANT } from './identities.ts'
import { runDemo } from './run.ts'
import { type PlannedInvoice, planOf, sourceSchema } from './plan.ts'
import { printLine, printNextSteps, printResults, printAddresses } from './output.ts'
import { findOrStart } from './service.ts'

type Options = { readonly keep: boolean; readonly limit?: number }

const INVOICES_MAX = 412
const PORT_DEFAULT = 8080

const invoiceCount = (text: string): number => {
  const count = Number(text)
  if (/^\d{1,3}$/.test(text) && count >= 1 && count <= INVOICES_MAX) return count
  throw new InvalidArgumentError(`A number from 1 to ${INVOICES_MAX}.`)
}

const readOptions = (): Options =>
  new Command('demo')
    .description(
      'Sends the invoices of the Chinook sample database through the API: orders, invoices, approvals, ' +
        'payments, retries on purpose. Then compares what was planned with what the lists and the published facts say.',
    )
    .option('--keep', 'leave the service running afterwards', false)
    .option('--limit <count>', 'send only this number of invoices', invoiceCount)
    .addHelpText(
      'after',
      '\nUses the service of LEDGER_DATA_DIR (.data) if it runs; else starts it, on PORT or any free one, and stops\n' +
        'it again. A second run sends the same keys, so nothing is paid again.\n' +
        'Exit code 1 when any sum is not as expected.',
    )
    .parse()
    .opts<Options>()

/** Aborts on SIGINT, SIGTERM and SIGHUP; the reason is the exit code that shells expect. */
const stopSignal = (): AbortSignal => {
  const stop = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(name, () => {
      if (!stop.signal.aborted) process.stderr.write('\nStopping.\n')
      stop.abort(128 + constants.signals[name])
    })
  return stop.signal
}

const readPlan = async (limit?: number): Promise<readonly PlannedInvoice[]> => {
  const text = await readFile(new URL('chinook-invoices.json', import.meta.url), 'utf8')
  return planOf(sourceSchema.parse(JSON.parse(text)).slice(0, limit))
}

const seconds = (fromMs: number): string => `${((performance.now() - fromMs) / 1_000).toFixed(1)} s`

/** Resolves to true when every sum is as planned. */
const demo = async (config: Config, options: Options, signal: AbortSignal): Promise<boolean> => {
  const startedAtMs = performance.now()
  const plan = await readPlan(options.limit)
  printLine(`The invoices of a music shop, ${plan.length} of them, as the tenant ${TENANT}.`)
  // A service that ends with the demo needs no known port.
  const port = options.keep || config.port !== PORT_DEFAULT ? config.port : 0
  const onStarting = (): void => printLine(`No service runs on ${config.dataDir}: starting one.`)
  const service = await findOrStart(config, { port, signal, onStarting })
  const stays = (): boolean => !service.startedHere || (options.keep && !signal.aborted)
  try {
    printAddresses(service, config)
    const runFromMs = performance.now()
    const results = await runDemo(identitiesOf(config, service.addresses, signal), plan)
    const wrong = printResults(results)
    for (const sentence of wrong) process.stderr.write(`${sentence}\n`)
    printLine(`took ${seconds(runFromMs)}, ${seconds(startedAtMs)} with the start`)
    printLine()
    if (stays()) printNextSteps(service, config, results)
    else printLine('The service ends with the demo. To look around in what it made: npm run demo -- --keep')
    return wrong.length === 0
  } finally {
    if (!stays()) await service.stop()
  }
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
