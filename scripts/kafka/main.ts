import { Command } from 'commander'
import { type ChildContext, runAsChild } from '../../src/childProcesses/childMain.ts'
import { startKafka } from './broker.ts'
import { portArgument } from '../portArgument.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { parseUser } from './settings.ts'

type Options = { port: number; saslPort: number; sasl: boolean; dataDir: string; user: Record<string, string> }

/** Longer than the broker has for its end. */
const CLOSE_MAX_MS = 25_000

const printNotice = (line: string): void => {
  process.stderr.write(`${line}\n`)
}

const user = (text: string, users: Record<string, string>): Record<string, string> => {
  const [name, password] = parseUser(text)
  return { ...users, [name]: password }
}

const options = (): Options =>
  new Command('kafka')
    .description('A real Apache Kafka broker of one node for development and CI, on 127.0.0.1.')
    .option('--port <port>', 'where it listens; 0 takes a free port', portArgument, 9092)
    .option('--sasl', 'also listen with SASL/PLAIN, and let ACLs decide what its users may do', false)
    .option('--sasl-port <port>', 'where the SASL listener is; 0 takes a free port', portArgument, 0)
    .option('--user <name:password>', 'a user of the SASL listener (repeatable; "ledger" is the super user)', user, {})
    .option('--data-dir <path>', 'where it keeps its data', '.data/kafka')
    .addHelpText(
      'after',
      '\nPrints the address, with --sasl also "sasl <address>", then "ready". Users and passwords go to stderr.' +
        '\nThe jars come from Maven, once. Needs java (17 or newer) and mvn: apt-get install default-jre-headless maven.',
    )
    .parse()
    .opts<Options>()

const start = async ({ cleanup, fail }: ChildContext): Promise<string> => {
  const { port, sasl, saslPort, dataDir, user: users } = options()
  const wanted = sasl ? { port: saslPort, users } : undefined
  const kafka = await startKafka({ port, dataDir, sasl: wanted, log: printNotice })
  cleanup.defer(() => {
    // A second Ctrl-C kills the broker.
    process.on('SIGINT', () => void kafka.kill())
    return kafka.stop()
  })
  void kafka.ended.then(() => fail(new StartupError(`Kafka ended by itself (see kafka.log in ${dataDir}).`)))
  for (const [name, password] of Object.entries(kafka.sasl?.users ?? {})) printNotice(`user ${name}:${password}`)
  return [...kafka.brokers, ...(kafka.sasl?.brokers ?? []).map(address => `sasl ${address}`)].join('\n')
}

runAsChild({ start, closeMaxMs: CLOSE_MAX_MS })
