import Mocha from 'mocha'
import { closeShared } from '../support/mochaHooks.ts'
import type { FileResult, Order, Report, RunOptions } from './messages.ts'
import { FileReporter } from './reporter.ts'
import { mochaOptions } from './settings.ts'

/**
 * A process that runs test files, one after the other, on orders over IPC. The shared service and broker are started
 * for the first file that needs them, and stopped at the end of the process.
 */

const INTERRUPTED = 130

const { grep, isColored } = JSON.parse(process.argv[2] ?? '{}') as RunOptions

const report = (message: Report): void => void process.send?.(message)

const runFile = async (file: string): Promise<FileResult> => {
  const mocha = new Mocha({ ...mochaOptions, reporter: FileReporter, color: isColored, ...(grep ? { grep } : {}) })
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

/** Mocha's command line does the same: the rejection becomes an uncaught exception, which fails the test that runs. */
process.on('unhandledRejection', reason => {
  throw reason
})

/** Stops the shared services, after which the process ends, unless a test has left a handle open. */
const end = async (): Promise<void> => {
  await closeShared()
  if (process.connected) process.disconnect()
}

const giveUp = (): void => void end().finally(() => process.exit(INTERRUPTED))

/** Without the runner this process must end its child processes itself; it leads their process group. */
const giveUpAlone = (): void => void end().finally(() => process.kill(-process.pid, 'SIGKILL'))

process.on('message', (order: Order) => {
  if ('end' in order) {
    process.off('disconnect', giveUpAlone)
    void end()
  } else void runFile(order.run).then(result => report({ result }))
})
// The runner passes Ctrl-C on as SIGTERM. A runner that was killed is seen by the end of its channel.
process.once('SIGTERM', giveUp)
process.once('disconnect', giveUpAlone)
report({ ready: true })
