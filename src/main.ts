import { resolve } from 'node:path'
import closeWithGrace from 'close-with-grace'
import { readCommandLine } from './compose/commandLine.ts'
import { reportUnreachable } from './compose/reachability.ts'
import type { Service, Starting } from './compose/service.ts'
import { checkEvidenceSettings } from './compose/evidenceSettings.ts'
import { type Config, readConfig } from './settings/config.ts'
import { DEFAULT_DATA_DIR } from './settings/environment.ts'
import { SHUTDOWN_MAX_MS } from './settings/timeBudgets.ts'
import { withoutSecrets } from './lib/redaction.ts'
import { sentenceOf } from './lib/startupError.ts'
import { within } from './lib/time.ts'
import { endTelemetry } from './telemetry.ts'

/** The service: `npm start`. Prints its addresses, then `ready`; shuts down gracefully on SIGINT and SIGTERM. */

/** The start goes on when dependencies were tried for so long. */
const REPORT_FIRST_MS = 1_000

const print = (line: string): void => void process.stdout.write(`${line}\n`)
/** Errors of libraries may quote connection strings. */
const notify = (sentence: string): void => void process.stderr.write(`${withoutSecrets(sentence)}\n`)

/** What a command in another terminal needs to find this service. */
const dataDirSetting = ({ dataDir }: Config): string =>
  dataDir === resolve(DEFAULT_DATA_DIR) ? '' : `LEDGER_DATA_DIR='${dataDir}' `

const announce = ({ addresses, logs }: Service, config: Config): void => {
  const { api, event_store, postgres, kafka, issuer, metrics } = addresses
  const database = new URL(postgres)
  print(`API           ${api}`)
  print(`console       ${api}/console`)
  print(`docs          ${api}/docs`)
  print(`contract      ${api}/openapi.json`)
  print(`issuer        ${issuer}`)
  print(`event store   ${event_store}`)
  print(`Postgres      ${database.hostname}:${database.port}${database.pathname}`)
  print(`Kafka         ${kafka ?? `none; the same facts are at GET ${api}/events (npm run kafka, KAFKA_BROKERS)`}`)
  print(`metrics       ${metrics ?? 'none (METRICS_PORT=off)'}`)
  print(`log           ${logs}`)
  print('')
  print('Try it, in another terminal:')
  print(
    `  TOKEN=$(${dataDirSetting(config)}npm run -s ledger -- token --tenant acme --subject me --scope "orders:write orders:read")`,
  )
  print(`  curl -s ${api}/orders -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\`)
  print(`    -d '{"currency":"USD","lines":[{"sku":"tea","quantity":2,"unit_amount":450}]}'`)
  print('')
  print('ready')
}

/** The primary of several processes needs few of the modules of the service, so each form loads its own. */
const start = async (config: Config, starting: Starting): Promise<Service> => {
  if (config.processes === 1) return (await import('./compose/service.ts')).compose(config, starting)
  return (await import('./cluster/primary.ts')).startProcesses(config, starting)
}

const USAGE_ERROR = 2

const main = async (): Promise<void> => {
  const commandLine = readCommandLine(process.argv.slice(2))
  if ('help' in commandLine) return void process.stdout.write(commandLine.help)
  if ('refusal' in commandLine) {
    notify(commandLine.refusal)
    process.exitCode = USAGE_ERROR
    return
  }
  await run()
}

const run = async (): Promise<void> => {
  let place = { host: '', port: 0 }
  const ending = new AbortController()
  try {
    const config = readConfig()
    place = config
    for (const sentence of config.unknownSettings) notify(sentence)
    await checkEvidenceSettings(config)
    // Before the modules of the service are loaded, which takes this process's time.
    await within(reportUnreachable(config, notify), REPORT_FIRST_MS, () => undefined)
    const starting = start(config, { signal: ending.signal, onWaiting: notify, onOutage: notify })
    closeWithGrace({ delay: config.shutdownDelayMs + SHUTDOWN_MAX_MS, logger: false }, async ({ err }) => {
      ending.abort()
      print('stopping')
      if (err) process.stderr.write(`${err.stack ?? err.message}\n`)
      const service = await starting.catch(() => undefined)
      // A service that cannot continue does not serve for any longer.
      if (!err && process.exitCode === undefined) await service?.drain()
      await service?.close()
      await endTelemetry()
      print('stopped')
      // The signal of this process to itself after a failure must exit with 1; the library exits with 0 after a signal.
      if (process.exitCode !== undefined) process.exit()
    })
    const service = await starting
    announce(service, config)
    void service.failed.then(reason => {
      notify(reason.message)
      process.exitCode = 1
      process.kill(process.pid, 'SIGTERM')
    })
  } catch (error) {
    // A signal ended the start; the handler of signals ends the process.
    if (ending.signal.aborted) return
    notify(sentenceOf(error, place) ?? (error instanceof Error ? String(error.stack) : String(error)))
    process.exit(1)
  }
}

// A reader that has gone, as in `npm start | head`, must not end the service.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)
await main()
