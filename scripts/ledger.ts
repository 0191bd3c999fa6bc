import { Command } from 'commander'
import { StartupError } from '../src/startupError.ts'
import { Unavailable } from '../src/ports.ts'
import { backupCommand } from './ledger/backup.ts'
import { clientsCommand } from './ledger/clients.ts'
import { consumeCommand } from './ledger/consume.ts'
import { deadLettersCommand } from './ledger/deadLetters.ts'
import { doctorCommand } from './ledger/doctor.ts'
import { evidenceCommand } from './ledger/evidence.ts'
import { exportCommand } from './ledger/export.ts'
import { importCommand } from './ledger/import.ts'
import { issuerCommand } from './ledger/issuer.ts'
import { keysCommand } from './ledger/keys.ts'
import { manifestCommand } from './ledger/manifest.ts'
import { personalDataCommand } from './ledger/personalData.ts'
import { printNotice } from './ledger/print.ts'
import { periodsCommand } from './ledger/periods.ts'
import { projectionsCommand } from './ledger/projections.ts'
import { replayCommand } from './ledger/replay.ts'
import { streamsCommand } from './ledger/streams.ts'
import { subscriptionsCommand } from './ledger/subscriptions.ts'
import { tenantsCommand } from './ledger/tenants.ts'
import { tokenCommand } from './ledger/token.ts'
import { usersCommand } from './ledger/users.ts'
import { verifyCommand } from './ledger/verify.ts'
import { versionsCommand } from './ledger/versions.ts'

/** The operators' and auditors' command line: `npm run ledger -- <command>`. */

const ledger = new Command('ledger')
  .description('Commands of operators and auditors of the ledger.')
  .addCommand(backupCommand)
  .addCommand(clientsCommand)
  .addCommand(consumeCommand)
  .addCommand(deadLettersCommand)
  .addCommand(doctorCommand)
  .addCommand(evidenceCommand)
  .addCommand(exportCommand)
  .addCommand(importCommand)
  .addCommand(issuerCommand)
  .addCommand(keysCommand)
  .addCommand(manifestCommand)
  .addCommand(personalDataCommand)
  .addCommand(periodsCommand)
  .addCommand(projectionsCommand)
  .addCommand(replayCommand)
  .addCommand(streamsCommand)
  .addCommand(subscriptionsCommand)
  .addCommand(tenantsCommand)
  .addCommand(tokenCommand)
  .addCommand(usersCommand)
  .addCommand(verifyCommand)
  .addCommand(versionsCommand)
  .addHelpText(
    'after',
    '\nThe settings are those of the service: LEDGER_DATA_DIR (.data) is the data directory of a running service;\n' +
      'EVENTSTORE_URL, DATABASE_URL, KAFKA_BROKERS and OIDC_ISSUER name external dependencies. Every command has --json.\n' +
      'Exit code 1: the command found a problem or could not be executed; the reason is one sentence on stderr.\n' +
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

/** The reader of stdout may stop early, as in `… | head`. Results that cannot be written otherwise are a failure. */
const unwritten = (error: NodeJS.ErrnoException): never => {
  if (error.code === 'EPIPE') process.exit(0)
  printNotice(`The results cannot be written: ${error.message}`)
  process.exit(1)
}
process.stdout.on('error', unwritten)
try {
  await ledger.parseAsync()
} catch (error) {
  printNotice(sentenceOf(error))
  process.exitCode = 1
}
