import closeWithGrace from 'close-with-grace'
import { compose, type Service } from './compose.ts'
import { readConfig } from './config.ts'
import { StartupError, systemCode } from './startupError.ts'
import { endTelemetry } from './telemetry.ts'

/** The service: `npm start`. Prints its addresses, then `ready`; shuts down gracefully on SIGINT and SIGTERM. */

const SHUTDOWN_MAX_MS = 15_000

/** The sentence for an error that an operator can correct; undefined for a bug, which is printed with its stack. */
const sentenceOf = (error: unknown, port: number): string | undefined => {
  if (error instanceof StartupError) return error.message
  if (systemCode(error) === 'EADDRINUSE') return `Port ${port} is in use. Set PORT to another one, or 0 for any.`
  if (systemCode(error) === 'EACCES') return `Port ${port} is not permitted. Set PORT to one above 1023.`
  return undefined
}

const print = (line: string): void => void process.stdout.write(`${line}\n`)

const announce = ({ addresses, logs }: Service): void => {
  const { api, event_store, postgres, kafka, issuer } = addresses
  const database = new URL(postgres)
  print(`API           ${api}`)
  print(`contract      ${api}/openapi.json`)
  print(`issuer        ${issuer}`)
  print(`event store   ${event_store}`)
  print(`Postgres      ${database.hostname}:${database.port}${database.pathname}`)
  print(`Kafka         ${kafka ?? `none; the same facts are at GET ${api}/events (npm run kafka, KAFKA_BROKERS)`}`)
  print(`log           ${logs}`)
  print('')
  print('Try it, in another terminal:')
  print(`  TOKEN=$(npm run -s ledger -- token --tenant acme --subject me --scope "orders:write orders:read")`)
  print(`  curl -s ${api}/orders -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\`)
  print(`    -d '{"currency":"USD","lines":[{"sku":"tea","quantity":2,"unit_amount":450}]}'`)
  print('')
  print('ready')
}

const main = async (): Promise<void> => {
  let port = 0
  try {
    const config = readConfig()
    ;({ port } = config)
    const ending = new AbortController()
    const onWaiting = (reason: string): void => void process.stderr.write(`Waiting for the event store. ${reason}\n`)
    const starting = compose(config, { signal: ending.signal, onWaiting })
    closeWithGrace({ delay: SHUTDOWN_MAX_MS, logger: false }, async ({ err }) => {
      ending.abort()
      if (err) process.stderr.write(`${err.stack ?? err.message}\n`)
      await (await starting.catch(() => undefined))?.close()
      await endTelemetry()
      // The signal of this process to itself after a failure must exit with 1; the library exits with 0 after a signal.
      if (process.exitCode !== undefined) process.exit()
    })
    const service = await starting
    announce(service)
    void service.failed.then(reason => {
      process.stderr.write(`${reason.message}\n`)
      process.exitCode = 1
      process.kill(process.pid, 'SIGTERM')
    })
  } catch (error) {
    process.stderr.write(`${sentenceOf(error, port) ?? (error instanceof Error ? error.stack : String(error))}\n`)
    process.exit(1)
  }
}

await main()
