import { Command } from 'commander'
import { StartupError } from '../src/startupError.ts'
import { Unavailable } from '../src/ports.ts'
import { clientsCommand } from './ledger/clients.ts'
import { consumeCommand } from './ledger/consume.ts'
import { deadLettersCommand } from './ledger/deadLetters.ts'
import { doctorCommand } from './ledger/doctor.ts'
import { issuerCommand } from './ledger/issuer.ts'
import { keysCommand } from './ledger/keys.ts'
import { manifestCommand } from './ledger/manifest.ts'
import { printNotice } from './ledger/print.ts'
import { projectionsCommand } from './ledger/projections.ts'
import { streamsCommand } from './ledger/streams.ts'
import { subscriptionsCommand } from './ledger/subscriptions.ts'
import { tenantsCommand } from './ledger/tenants.ts'
import { tokenCommand } from './ledger/token.ts'
import { usersCommand } from './ledger/users.ts'

/** The operators' and auditors' command line: `npm run ledger -- <command>`. */

const ledger = new Command('ledger')
  .description('Commands for those who run and audit the ledger.')
  .addCommand(clientsCommand)
  .addCommand(consumeCommand)
  .addCommand(deadLettersCommand)
  .addCommand(doctorCommand)
  .addCommand(issuerCommand)
  .addCommand(keysCommand)
  .addCommand(manifestCommand)
  .addCommand(projectionsCommand)
  .addCommand(streamsCommand)
  .addCommand(subscriptionsCommand)
  .addCommand(tenantsCommand)
  .addCommand(tokenCommand)
  .addCommand(usersCommand)
  .addHelpText(
    'after',
    '\nEvery command reads the same settings as the service: LEDGER_DATA_DIR (.data) names the one that is meant, and\n' +
      'EVENTSTORE_URL, DATABASE_URL, KAFKA_BROKERS, OIDC_ISSUER the real services. All take --json. Exit code 1: something\n' +
      'was found, or the command could not be executed; the reason is a sentence on stderr.\n' +
      '\nWith npm:  npm run -s ledger -- doctor',
  )
  .showSuggestionAfterError()
  // Options after a subcommand belong to the subcommand, even if the parent has an option of the same name.
  .enablePositionalOptions()

/** StartupError and Unavailable are printed as a sentence; other errors are bugs and keep their stack. */
const sentenceOf = (error: unknown): string => {
  if (error instanceof StartupError) return error.message
  if (error instanceof Unavailable) return `${error.message} See npm run ledger -- doctor.`
  return error instanceof Error ? String(error.stack) : String(error)
}

// The reader of stdout may stop early, as in `… | head`.
process.stdout.on('error', () => process.exit(0))
try {
  await ledger.parseAsync()
} catch (error) {
  printNotice(sentenceOf(error))
  process.exitCode = 1
}
