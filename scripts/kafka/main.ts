import { Command, InvalidArgumentError } from 'commander'
import { type Kafka, startKafka } from './broker.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { parseUser } from './settings.ts'

/** `npm run kafka`: the command line of the broker. */

type Options = { port: number; saslPort: number; sasl: boolean; dataDir: string; user: Record<string, string> }

const PORT_MAX = 65_535

const printNotice = (line: string): void => {
  process.stderr.write(`${line}\n`)
}

const port = (text: string): number => {
  const number = Number(text)
  if (Number.isInteger(number) && number >= 0 && number <= PORT_MAX && text.trim() !== '') return number
  throw new InvalidArgumentError(`A port is a number from 0 to ${PORT_MAX}.`)
}

const user = (text: string, users: Record<string, string>): Record<string, string> => {
  const [name, password] = parseUser(text)
  return { ...users, [name]: password }
}

const options = (): Options =>
  new Command('kafka')
    .description('A real Apache Kafka broker of one node for development and CI, on 127.0.0.1.')
    .option('--port <port>', 'where it listens; 0 takes a free port', port, 9092)
    .option('--sasl', 'also listen with SASL/PLAIN, and let ACLs decide what its users may do', false)
    .option('--sasl-port <port>', 'where the SASL listener is; 0 takes a free port', port, 0)
    .option('--user <name:password>', 'a user of the SASL listener (repeatable; "ledger" is the super user)', user, {})
    .option('--data-dir <path>', 'where it keeps its data', '.data/kafka')
    .addHelpText(
      'after',
      '\nPrints the address, with --sasl also "sasl <address>", then "ready". Users and passwords go to stderr.' +
        '\nThe jars come from Maven, once. Needs java (17 or newer) and mvn: apt-get install default-jre-headless maven.',
    )
    .parse()
    .opts<Options>()

const announce = (kafka: Kafka): void => {
  const { sasl } = kafka
  for (const [name, password] of Object.entries(sasl?.users ?? {})) printNotice(`user ${name}:${password}`)
  const lines = [...kafka.brokers, ...(sasl?.brokers ?? []).map(address => `sasl ${address}`), 'ready']
  process.stdout.write(`${lines.join('\n')}\n`)
}

const serve = async ({ port, sasl, saslPort, dataDir, user: users }: Options): Promise<void> => {
  const kafka = await startKafka({
    port,
    dataDir,
    sasl: sasl ? { port: saslPort, users } : undefined,
    log: printNotice,
  })
  let isStopping = false
  const stop = (): void => {
    // A second Ctrl-C kills the broker.
    void (isStopping ? kafka.kill() : kafka.stop())
    isStopping = true
  }
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
  announce(kafka)
  await kafka.ended
  if (!isStopping) throw new StartupError(`Kafka ended by itself (see kafka.log in ${dataDir}).`)
}

try {
  await serve(options())
} catch (error) {
  if (!(error instanceof StartupError)) throw error
  printNotice(error.message)
  process.exitCode = 1
}
