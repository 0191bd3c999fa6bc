import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { SHORT_LIVED } from '../support/nodeFlags.ts'

/** Runs a script as its own process, as a terminal does. */

export type Ended = {
  readonly code: number | NodeJS.Signals
  readonly stdout: string
  /** Without the line of the target, which commands of the ledger print first. */
  readonly stderr: string
  readonly target: string
}
export type Run = { readonly child: ChildProcess; readonly stdout: () => string; readonly ended: Promise<Ended> }

/** Settings of the test run itself, which must not reach the script. */
const NOT_PASSED_ON: ReadonlySet<string> = new Set([
  'EVENTSTORE_URL',
  'DATABASE_URL',
  'KAFKA_BROKERS',
  'OIDC_ISSUER',
  'OIDC_AUDIENCE',
  'PORT',
])

const environment = (env: Readonly<Record<string, string>>): NodeJS.ProcessEnv => ({
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !NOT_PASSED_ON.has(name))),
  ...env,
})

/** `script` is relative to scripts/; `typed` is the whole of stdin. */
export const start = (
  script: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  typed = '',
): Run => {
  const path = fileURLToPath(new URL(`../../scripts/${script}`, import.meta.url))
  const child = spawn(process.execPath, [...SHORT_LIVED, path, ...args], {
    env: environment(env),
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  // A script that does not read stdin may end before everything is written.
  child.stdin.on('error', () => undefined).end(typed)
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString()
  })
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString()
  })
  const ended = new Promise<Ended>(resolve =>
    child.once('close', (code, signal) => {
      const [target = ''] = /^Target: .*\n/.exec(stderr) ?? []
      resolve({ code: signal ?? code ?? 0, stdout, stderr: stderr.slice(target.length), target })
    }),
  )
  return { child, stdout: () => stdout, ended }
}

export const run = (script: string, args: readonly string[], env: Readonly<Record<string, string>>): Promise<Ended> =>
  start(script, args, env).ended

/**
 * For the shell blocks of documents: `npm run` starts in the folder of the package, where the files that the commands write do not
 * belong; the command line runs without npm, which takes longer to start than most commands. ROOT is the repository.
 */
export const NPM = `npm() {
  case "$*" in
    'run -s ledger -- '*) shift 4; node --disable-warning=TimeoutNegativeWarning "$ROOT/scripts/ledger.ts" "$@" ;;
    *) (cd "$ROOT" && command npm "$@") ;;
  esac
}
`
