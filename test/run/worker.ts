import Mocha from 'mocha'
import { closeShared } from '../support/mochaHooks.ts'
import type { FileResult, WorkerCommand, WorkerMessage, RunOptions } from './messages.ts'
import { FileReporter } from './reporter.ts'
import { mochaOptions } from './settings.ts'

/**
 * A worker process: runs the test files that the runner sends over IPC, one after the other. The shared service and broker
 * start with the first file that needs them, and stop at the end of the process.
 */

const INTERRUPTED = 130
const SAY_WHAT_IS_OPEN_AFTER_MS = 1_000

const { grep, caseMaxMs, isColored } = JSON.parse(process.argv[2] ?? '{}') as RunOptions

const report = (message: WorkerMessage): void => void process.send?.(message)

const runFile = async (file: string): Promise<FileResult> => {
  const chosen = { ...(grep && { grep }), ...(caseMaxMs && { timeout: caseMaxMs }) }
  const mocha = new Mocha({ ...mochaOptions, reporter: FileReporter, color: isColored, ...chosen })
  mocha.addFile(file)
  try {
    await mocha.loadFilesAsync()
  } catch (error) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    process.stdout.write(`${text}\n`)
    return { passed: 0, failures: [`  1) cannot be loaded:\n${text}`] }
  }
  await new Promise(resolve => mocha.run(resolve))
  mocha.dispose()
  return FileReporter.last
}

/** An unhandled rejection becomes an uncaught exception, which fails the running test, as under mocha's command line. */
process.on('unhandledRejection', reason => {
  throw reason
})

const sayWhatIsOpen = (): void =>
  void process.stdout.write(`Open in the worker: ${process.getActiveResourcesInfo().join(', ')}\n`)

/** Stops the shared services; then the process exits by itself, unless a test has left a handle open. */
const endInOrder = async (): Promise<void> => {
  await closeShared()
  if (process.connected) process.disconnect()
  setTimeout(sayWhatIsOpen, SAY_WHAT_IS_OPEN_AFTER_MS).unref()
}

const endOnInterrupt = (): void => void endInOrder().finally(() => process.exit(INTERRUPTED))

/** After the end of the runner this process must end its child processes itself; it leads their process group. */
const endWithoutRunner = (): void => void endInOrder().finally(() => process.kill(-process.pid, 'SIGKILL'))

process.on('message', (command: WorkerCommand) => {
  if ('end' in command) {
    process.off('disconnect', endWithoutRunner)
    void endInOrder()
  } else void runFile(command.run).then(result => report({ result }))
})
// The runner forwards Ctrl-C as SIGTERM. When the runner is killed, the IPC channel disconnects.
process.once('SIGTERM', endOnInterrupt)
process.once('disconnect', endWithoutRunner)
report({ ready: true })
