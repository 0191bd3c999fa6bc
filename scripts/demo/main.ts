import { readFile } from 'node:fs/promises'
import { constants } from 'node:os'
import { Command, InvalidArgumentError } from 'commander'
import { type Config, readConfig } from '../../src/config.ts'
import { StartupError } from '../../src/startupError.ts'
import { callersOf, TENANT } from './callers.ts'
import { DemoFailure } from './failure.ts'
import { perform } from './perform.ts'
import { type PlannedInvoice, planOf, sourceSchema } from './plan.ts'
import { say, sayNext, sayResults, sayWhere } from './say.ts'
import { findOrStart } from './service.ts'

/** `npm run demo`: a music shop's invoices through the API, and whether the books balance in the end. */

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
      'Plays the invoices of the Chinook sample database through the API: orders, invoices, approvals, ' +
        'payments, retries on purpose. Then compares what was planned with what the lists and the published facts say.',
    )
    .option('--keep', 'leave the service running afterwards', false)
    .option('--limit <count>', 'only so many of the invoices', invoiceCount)
    .addHelpText(
      'after',
      '\nUses the service of LEDGER_DATA_DIR (.data) if it runs; else starts it, on PORT or any free one, and stops\n' +
        'it again. Twice is once: a second run sends the same keys, and nothing is paid again.\n' +
        'Exit code 1 when any sum is not as expected.',
    )
    .parse()
    .opts<Options>()

/** Aborts at Ctrl-C and its like; the reason is the exit code that shells expect then. */
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

/** True when every sum is as expected. */
const demo = async (config: Config, options: Options, signal: AbortSignal): Promise<boolean> => {
  const startedAtMs = performance.now()
  const plan = await readPlan(options.limit)
  say(`The invoices of a music shop, ${plan.length} of them, as the tenant ${TENANT}.`)
  // Nobody needs to know beforehand where a service is that ends with the demo: any free port will do.
  const port = options.keep || config.port !== PORT_DEFAULT ? config.port : 0
  const onStarting = (): void => say(`No service runs on ${config.dataDir}: starting one.`)
  const service = await findOrStart(config, { port, signal, onStarting })
  const stays = (): boolean => !service.startedHere || (options.keep && !signal.aborted)
  try {
    sayWhere(service, config)
    const playedFromMs = performance.now()
    const results = await perform(callersOf(config, service.addresses, signal), plan)
    const wrong = sayResults(results)
    for (const sentence of wrong) process.stderr.write(`${sentence}\n`)
    say(`took ${seconds(playedFromMs)}, ${seconds(startedAtMs)} with the start`)
    say()
    if (stays()) sayNext(service.addresses, config, results)
    else say('The service ends with the demo. To look around in what it made: npm run demo -- --keep')
    return wrong.length === 0
  } finally {
    if (!stays()) await service.stop()
  }
}

/** What a person can act on is a sentence; anything else is a bug, and keeps its stack. */
const sentenceOf = (error: unknown): string => {
  if (error instanceof DemoFailure || error instanceof StartupError) return error.message
  return error instanceof Error ? String(error.stack) : String(error)
}

const options = readOptions()
const signal = stopSignal()
try {
  const balanced = await demo(readConfig(), options, signal)
  process.exitCode = balanced ? 0 : 1
} catch (error) {
  if (!signal.aborted) process.stderr.write(`${sentenceOf(error)}\n`)
  process.exitCode = 1
}
// What may still be open, a connection kept alive say, is of no interest any more.
process.exit(signal.aborted ? Number(signal.reason) : process.exitCode)
