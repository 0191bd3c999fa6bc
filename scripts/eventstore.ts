import { Command } from 'commander'
import { type ChildContext, runAsChild } from '../src/childProcesses/childMain.ts'
import { startEmbeddedServices } from '../src/embedded/startEmbedded.ts'
import { openDataDirectory } from '../src/embedded/dataDirectory.ts'
import { portArgument } from './portArgument.ts'

const PORT_DEFAULT = 2113
const CLOSE_MAX_MS = 60_000

type Options = { port: number; dataDir: string }

const options = (): Options =>
  new Command('eventstore')
    .description(
      'An event store for development: speaks the EventStoreDB protocol on 127.0.0.1, keeps its log in Postgres.',
    )
    .option('--port <port>', 'where it listens; 0 takes a free port', portArgument, PORT_DEFAULT)
    .option('--data-dir <folder>', 'where its data is stored', '.data/eventstore')
    .parse()
    .opts<Options>()

const start = async ({ cleanup, fail }: ChildContext): Promise<string> => {
  const { port, dataDir } = options()
  const directory = await openDataDirectory(dataDir)
  cleanup.defer(directory.release)
  const log = (line: string): void => void process.stderr.write(`${line}\n`)
  const embedded = { dataDir, database: false, eventStore: true, eventStorePort: port, log, onExit: fail }
  const services = await startEmbeddedServices(embedded)
  cleanup.defer(services.stop)
  return String(services.eventStoreUrl)
}

runAsChild({ start, closeMaxMs: CLOSE_MAX_MS })
