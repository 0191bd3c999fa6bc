import { Command, CommanderError } from 'commander'
import { StartupError } from '../src/lib/startupError.ts'
import { Unavailable } from '../src/ports.ts'
import { EffectUnknownError, LedgerError, NoAnswerError, violationsBeyond } from './client/src/errors.ts'
import { printNotice } from './ledger/print.ts'

/** A command is loaded only when it is called: most of the time of a short command is the loading of modules. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  backup: async () => (await import('./ledger/backup.ts')).backupCommand,
  clients: async () => (await import('./ledger/clients.ts')).clientsCommand,
  consume: async () => (await import('./ledger/consume.ts')).consumeCommand,
  'dead-letters': async () => (await import('./ledger/deadLetters.ts')).deadLettersCommand,
  doctor: async () => (await import('./ledger/doctor.ts')).doctorCommand,
  evidence: async () => (await import('./ledger/evidence.ts')).evidenceCommand,
  export: async () => (await import('./ledger/export.ts')).exportCommand,
  import: async () => (await import('./ledger/import.ts')).importCommand,
  issuer: async () => (await import('./ledger/issuer.ts')).issuerCommand,
  keys: async () => (await import('./ledger/keys.ts')).keysCommand,
  manifest: async () => (await import('./ledger/manifest.ts')).manifestCommand,
  'personal-data': async () => (await import('./ledger/personalData.ts')).personalDataCommand,
  periods: async () => (await import('./ledger/periods.ts')).periodsCommand,
  projections: async () => (await import('./ledger/projections.ts')).projectionsCommand,
  replay: async () => (await import('./ledger/replay.ts')).replayCommand,
  streams: async () => (await import('./ledger/streams.ts')).streamsCommand,
  subscriptions: async () => (await import('./ledger/subscriptions.ts')).subscriptionsCommand,
  tenants: async () => (await import('./ledger/tenants.ts')).tenantsCommand,
  token: async () => (await import('./ledger/token.ts')).tokenCommand,
  users: async () => (await import('./ledger/users.ts')).usersCommand,
  verify: async () => (await import('./ledger/verify.ts')).verifyCommand,
  versions: async () => (await import('./ledger/versions.ts')).versionsCommand,
}

const ledger = new Command('ledger')
  .description('Commands of operators and auditors of the ledger.')
  .addHelpText(
    'after',
    '\nThe settings are those of the service: LEDGER_DATA_DIR (.data) is the data directory of a running service;\n' +
      'EVENTSTORE_URL, DATABASE_URL, KAFKA_BROKERS and OIDC_ISSUER name external dependencies. Every command has --json.\n' +
      'Each command names its target on stderr. Exit code 1: the command was executed, and found a problem. Exit code 2: it\n' +
      'could not be executed: wrong usage, a refusal, a dependency that does not answer; the reason is a sentence on stderr.\n' +
      '\nWith npm:  npm run -s ledger -- doctor\n' +
      'Settings, limits and repairs: scripts/ledger/OPERATING.md. Backup and restore: scripts/ledger/BACKUP.md.',
  )
  .showSuggestionAfterError()
  // Options after a subcommand belong to the subcommand, even if the parent has an option of the same name.
  .enablePositionalOptions()

const called = process.argv[2] ?? ''
/** The help and the suggestions need all commands. */
const needsAll = !Object.hasOwn(COMMANDS, called)
for (const [name, load] of Object.entries(COMMANDS)) if (needsAll || name === called) ledger.addCommand(await load())

/** So that a job can tell a finding from a misspelt option. */
const NOT_EXECUTED = 2

/** `ledger -- tenants suspend`. */
const pathOf = (command: Command): string =>
  command.parent === null ? `${command.name()} --` : `${pathOf(command.parent)} ${command.name()}`

const throwUsageErrors = (command: Command): void => {
  command.exitOverride().showHelpAfterError(`See npm run -s ${pathOf(command)} --help.`)
  for (const part of command.commands) throwUsageErrors(part)
}
throwUsageErrors(ledger)

const refusalOf = ({ status, problem }: LedgerError): string => {
  if (problem === undefined) return `The API answered ${status}, in words that are not its own.`
  const { title, detail, code, correlation_id, errors = [] } = problem
  const sentences = [title, ...(detail === title ? [] : [detail]), ...violationsBeyond(detail, errors)]
  return `${sentences.join(' ')} (${code}, correlation id ${correlation_id})`
}

/** The sentence for a command that may have taken effect. */
const howToRepeat = ({ idempotencyKey }: EffectUnknownError): string =>
  idempotencyKey === undefined
    ? ' The command may have taken effect.'
    : ` The command may have taken effect: repeat it with --idempotency-key ${idempotencyKey}, and it does so once.`

/** Undefined for an error that is not the client's. */
const apiErrorSentence = (error: unknown): string | undefined => {
  if (error instanceof LedgerError) return refusalOf(error)
  if (error instanceof NoAnswerError)
    return `The API at ${new URL(error.url).origin} does not answer. See npm run ledger -- doctor.`
  if (error instanceof EffectUnknownError) return (apiErrorSentence(error.cause) ?? '') + howToRepeat(error)
  return undefined
}

/** StartupError, Unavailable and the errors of the client are printed as a sentence; other errors are bugs and keep their stack. */
const sentenceOf = (error: unknown): string => {
  if (error instanceof StartupError) return error.message
  if (error instanceof Unavailable) return `${error.message} See npm run ledger -- doctor.`
  return apiErrorSentence(error) ?? (error instanceof Error ? String(error.stack) : String(error))
}

/** The reader of stdout may stop early, as in `… | head`. Results that cannot be written otherwise are a failure. */
const unwritten = (error: NodeJS.ErrnoException): never => {
  if (error.code === 'EPIPE') process.exit(0)
  printNotice(`The results cannot be written: ${error.message}`)
  process.exit(NOT_EXECUTED)
}
process.stdout.on('error', unwritten)
try {
  await ledger.parseAsync()
} catch (error) {
  // Commander has printed its message, or the help that was asked for.
  const isPrinted = error instanceof CommanderError
  if (!isPrinted) printNotice(sentenceOf(error))
  process.exitCode = isPrinted && error.exitCode === 0 ? 0 : NOT_EXECUTED
}
