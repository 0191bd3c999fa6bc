/** The embedded event store alone, for any EventStoreDB client: `npm run eventstore -- --port P --data-dir D`. */

import { Command, InvalidArgumentError } from 'commander'
import { startEmbeddedServices } from '../src/embedded/startEmbedded.ts'
import { openDataDirectory } from '../src/embedded/dataDirectory.ts'
import { StartupError } from '../src/lib/startupError.ts'

const PORT_DEFAULT = 2113
const PORT_MAX = 65_535

type Options = { port: number; dataDir: string }

const say = (line: string): void => void process.stderr.write(`${line}\n`)

const fail = (error: unknown): never => {
  say(error instanceof StartupError ? error.message : error instanceof Error ? String(error.stack) : String(error))
  process.exit(1)
}

const readPort = (text: string): number => {
  const port = Number(text)
  if (/^\d+$/.test(text) && port <= PORT_MAX) return port
  throw new InvalidArgumentError(`A port is a number from 0 to ${PORT_MAX}.`)
}

const options = (): Options =>
  new Command('eventstore')
    .description(
      'An event store for development: speaks the EventStoreDB protocol on 127.0.0.1, keeps its log in Postgres.',
    )
    .option('--port <port>', 'where it listens; 0 takes a free port', readPort, PORT_DEFAULT)
    .option('--data-dir <folder>', 'where its data is stored', '.data/eventstore')
    .parse()
    .opts<Options>()

const toldToEnd = (): Promise<void> =>
  new Promise(resolve => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolve())
    process.stdout.on('error', () => resolve())
  })

try {
  const { port, dataDir } = options()
  const end = toldToEnd()
  const directory = await openDataDirectory(dataDir)
  const embedded = { dataDir, database: false, eventStore: true, eventStorePort: port, log: say, onExit: fail }
  const services = await startEmbeddedServices(embedded)
  process.stdout.write(`${services.eventStoreUrl}\nready\n`)
  await end
  await services.stop()
  await directory.release()
  process.exit(0)
} catch (error) {
  fail(error)
}
