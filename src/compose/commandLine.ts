const HELP = `Usage: [SETTING=value …] npm start

Starts the ledger, prints its addresses and then "ready". Ctrl-C stops it.

Settings are environment variables. Without any, everything that the service needs is embedded, with its data in .data.
  PORT, HOST                     where the API listens (8080, loopback)
  LEDGER_DATA_DIR                the data directory (.data)
  DATABASE_URL, EVENTSTORE_URL   Postgres and EventStoreDB instead of the embedded ones
  KAFKA_BROKERS                  where facts are published, such as 127.0.0.1:9092
  OIDC_ISSUER, OIDC_AUDIENCE     an issuer of tokens instead of the embedded one

scripts/ledger/OPERATING.md describes every setting.
Commands for operators and auditors:  npm run -s ledger -- --help
`

export type CommandLine = { readonly run: true } | { readonly help: string } | { readonly refusal: string }

export const readCommandLine = (args: readonly string[]): CommandLine => {
  const [first] = args
  if (first === undefined) return { run: true }
  if (first === '--help' || first === '-h') return { help: HELP }
  return {
    refusal:
      `npm start takes no arguments, and got ${args.join(' ')}. ` +
      'Settings are environment variables, as in PORT=8081 npm start; see npm start -- --help.',
  }
}
