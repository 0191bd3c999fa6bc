import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { Command, InvalidArgumentError } from 'commander'
import { filesOf, planOf, readCosts, writeCosts } from './plan.ts'
import { runPlan } from './pool.ts'
import { fileText, slowestText, summaryText } from './summary.ts'
import { type FileEnd, startWorker, type Worker } from './workerProcess.ts'

/** `npm test`: runs the test files in as many processes as there are processors, and reports as mocha does. */

const INTERRUPTED = 130
const FILE_MAX_MS = 900_000
const END_MAX_MS = 60_000
const MS_PER_SECOND = 1_000
/**
 * Most programs that the tests start run for a few seconds only, so optimizing compilation costs more than it saves.
 */
const ENVIRONMENT = {
  NODE_COMPILE_CACHE: fileURLToPath(new URL('../../node_modules/.cache/test', import.meta.url)),
  JDK_JAVA_OPTIONS: '-XX:TieredStopAtLevel=1',
}

const print = (text: string): void => void process.stdout.write(`${text}\n`)

type Asked = {
  readonly workers: number
  readonly grep?: string
  readonly slowest?: boolean
  readonly record?: boolean
  readonly fileMaxMs: number
  readonly endMaxMs: number
}

const runFiles = async (files: readonly string[], asked: Asked): Promise<boolean> => {
  const beganMs = performance.now()
  const stopping = new AbortController()
  const live = new Set<Worker>()
  const ends: FileEnd[] = []
  const failures: string[] = []
  const interrupt = async (): Promise<void> => {
    stopping.abort()
    await Promise.all([...live].map(worker => worker.interrupt()))
    process.exit(INTERRUPTED)
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => void interrupt())

  const options = { grep: asked.grep, isColored: process.stdout.isTTY }
  await runPlan(planOf(files, readCosts()), {
    workers: asked.workers,
    signal: stopping.signal,
    start: () => {
      const worker = startWorker(options, asked)
      live.add(worker)
      return worker
    },
    onFile: end => print(fileText(end, { done: ends.push(end), of: files.length })),
    onFailure: text => void failures.push(text),
  })
  const seconds = Object.fromEntries(ends.map(({ file, tookMs }) => [file, tookMs / MS_PER_SECOND]))
  if (asked.record) writeCosts(seconds)
  print(slowestText(seconds))
  print(summaryText(ends, failures, performance.now() - beganMs))
  return failures.length === 0 && ends.every(end => end.failures.length === 0)
}

const number = (text: string): number => {
  const value = Number(text)
  if (!(value > 0)) throw new InvalidArgumentError('A number above zero is needed.')
  return value
}

const main = async (patterns: readonly string[], asked: Asked): Promise<void> => {
  for (const [name, value] of Object.entries(ENVIRONMENT)) process.env[name] ??= value
  if (asked.slowest) return print(slowestText(readCosts()))
  const files = filesOf(patterns)
  if (files.length === 0) throw new Error(`No test file fits ${patterns.join(' ')}.`)
  if (!(await runFiles(files, asked))) process.exitCode = 1
}

await new Command('npm test --')
  .description('Runs test files, all but the soak tests without any, and lists the twenty slowest.')
  .argument('[files...]', 'test files or patterns')
  .option('-g, --grep <text>', 'only the cases whose full name matches')
  .option('--workers <n>', 'processes that run files', number, availableParallelism())
  .option('--file-max-ms <ms>', 'when a file is taken to hang', number, FILE_MAX_MS)
  .option('--end-max-ms <ms>', 'when a worker without any file left is taken to hang', number, END_MAX_MS)
  .option('--record', 'keeps the times in test/run/costs.json, by which the next run orders the files')
  .option('--slowest', 'runs nothing: lists the twenty slowest files on record')
  .action(main)
  .parseAsync()
