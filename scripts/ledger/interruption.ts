import { constants } from 'node:os'
import { printNotice } from './print.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
/** Shells report the end by a signal as this number plus that of the signal. */
const ENDED_BY_SIGNAL = 128

const PLAIN_WORD = /^[A-Za-z0-9_./:=@%+,-]+$/
const quoted = (word: string): string => (PLAIN_WORD.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)

/** The command line for these arguments, to be pasted into a shell, with the data directory if one is set. */
export const commandLine = (args: readonly string[]): string => {
  const dataDir = process.env['LEDGER_DATA_DIR'] ?? ''
  const setting = dataDir === '' ? '' : `LEDGER_DATA_DIR=${quoted(dataDir)} `
  return `${setting}npm run -s ledger -- ${args.map(quoted).join(' ')}`
}

/**
 * Runs `work` with a signal that SIGINT, SIGTERM and SIGHUP abort. Work that then rejects was interrupted: the command
 * that goes on (`goOn`, by default the same one) is printed on stderr, the exit code is that of the signal (130 for
 * Ctrl-C), and the result is undefined. Work that resolves was completed in spite of the signal. Work is to end soon
 * after the signal, for instance by `signal.throwIfAborted()` between two steps; a second signal ends the process at
 * once, so a step has to be safe against a kill too. An error before any signal is passed on.
 */
export const interruptible = async <T>(
  work: (signal: AbortSignal) => Promise<T>,
  goOn = () => commandLine(process.argv.slice(2)),
): Promise<T | undefined> => {
  const stop = new AbortController()
  let code = 0
  const notice = (): void => printNotice(`Interrupted. To continue:\n  ${goOn()}`)
  const onSignal = (name: NodeJS.Signals): void => {
    code = ENDED_BY_SIGNAL + constants.signals[name]
    if (!stop.signal.aborted) return stop.abort()
    notice()
    process.exit(code)
  }
  for (const name of SIGNALS) process.on(name, onSignal)
  try {
    return await work(stop.signal)
  } catch (error) {
    if (!stop.signal.aborted) throw error
    notice()
    process.exitCode = code
    return undefined
  } finally {
    for (const name of SIGNALS) process.off(name, onSignal)
  }
}
