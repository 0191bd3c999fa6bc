import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { Command, InvalidArgumentError } from 'commander'
import { whyNoBroker } from '../support/programs.ts'
import { makeClassArchive, pathOfArchive, usesBroker } from './classArchive.ts'
import { filesOf, planOf, readCosts, writeCosts } from './plan.ts'
import { runAlone, runPlan, type Workers } from './pool.ts'
import { repeatingFilesOf, UNIT_MAX_MS, unitFilesOf } from './selection.ts'
import { filesToRunAgain, type Results, resultsOf } from './secondRun.ts'
import { fileText, secondRunText, slowestText, summaryText, unsteadyText } from './summary.ts'
import { openTemporaryFiles } from './temporaryFiles.ts'
import { type FileOutcome, startBackgroundWorker, startWorker, type Worker } from './workerProcess.ts'

/** The command `npm test`: runs test files in several processes, and reports as mocha does. */

/** One more than there are processors, because many files wait for a process, a broker or a time for a third of their time. */
const WORKERS = availableParallelism() + 1
const INTERRUPTED = 130
const FILE_MAX_MS = 1_200_000
const END_MAX_MS = 180_000
const MS_PER_SECOND = 1_000
/**
 * Settings for the programs that the tests start, most of which run for a few seconds: Node reuses the code that an earlier
 * process compiled, and Java leaves out its optimizing compiler, which would cost more time than it saves.
 */
const FASTER_START_ENVIRONMENT = {
  NODE_COMPILE_CACHE: fileURLToPath(new URL('../../node_modules/.cache/test', import.meta.url)),
  JDK_JAVA_OPTIONS: '-XX:TieredStopAtLevel=1',
}

const print = (text: string): void => void process.stdout.write(`${text}\n`)

type CommandOptions = {
  readonly workers: number
  readonly grep?: string
  readonly unit?: boolean
  readonly repeat?: boolean
  readonly slowest?: boolean
  readonly record?: boolean
  readonly once?: boolean
  readonly fileMaxMs: number
  readonly endMaxMs: number
}

/** The workers find by the variables that there is no broker, or the archive for it. */
const prepareBrokers = async (files: readonly string[]): Promise<() => void> => {
  if (!(await usesBroker(files))) return () => undefined
  const noBroker = await whyNoBroker()
  if (noBroker !== undefined) {
    print(`No Kafka broker can be started, and the tests that need one of their own are not run: ${noBroker}`)
    process.env['TEST_NO_BROKER'] = noBroker
    return () => undefined
  }
  const archive = await pathOfArchive()
  process.env['TEST_CLASS_ARCHIVE'] = archive
  return makeClassArchive(archive)
}

/** The workers whose outcomes are added to `actual`, and counted as parts of `total`. */
type WorkersFor = (actual: FileOutcome[], total: number) => Workers

const runFailedAgain = async (first: FileOutcome[], { once }: CommandOptions, of: WorkersFor): Promise<Results> => {
  const files = once ? [] : filesToRunAgain(first)
  if (files.length > 0) print(secondRunText(files))
  const second: FileOutcome[] = []
  await runAlone(files, of(second, files.length))
  return resultsOf(first, second)
}

const runFiles = async (files: readonly string[], options: CommandOptions): Promise<boolean> => {
  const beganMs = performance.now()
  const stopping = new AbortController()
  const live = new Set<Worker>()
  const failures: string[] = []
  const stopMaking = await prepareBrokers(files)
  const interrupt = async (): Promise<void> => {
    stopping.abort()
    stopMaking()
    await Promise.all([...live].map(worker => worker.interrupt()))
    process.exit(INTERRUPTED)
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => void interrupt())

  const caseMaxMs = options.unit ? UNIT_MAX_MS : undefined
  const workerOptions = { grep: options.grep, caseMaxMs, isColored: process.stdout.isTTY }
  const workersFor: WorkersFor = (actual, total) => ({
    signal: stopping.signal,
    start: kind => {
      const worker = (kind === 'background' ? startBackgroundWorker : startWorker)(workerOptions, options)
      live.add(worker)
      return worker
    },
    onFile: end => print(fileText(end, { done: actual.push(end), total })),
    onFailure: text => void failures.push(text),
  })
  const outcomes: FileOutcome[] = []
  await runPlan(planOf(files, readCosts()), { ...workersFor(outcomes, files.length), workers: options.workers })
  const { final, unsteady } = await runFailedAgain(outcomes, options, workersFor)
  const seconds = Object.fromEntries(outcomes.map(({ file, tookMs }) => [file, tookMs / MS_PER_SECOND]))
  if (options.record) writeCosts(seconds)
  print(slowestText(seconds))
  print(unsteadyText(unsteady))
  print(summaryText(final, failures, performance.now() - beganMs))
  return failures.length === 0 && final.every(end => end.failures.length === 0)
}

const positiveNumber = (text: string): number => {
  const value = Number(text)
  if (!(value > 0)) throw new InvalidArgumentError('It must be a number above zero.')
  return value
}

const selectedFiles = (files: readonly string[], { unit, repeat }: CommandOptions): readonly string[] => {
  const chosen = unit ? unitFilesOf(files) : files
  return repeat ? repeatingFilesOf(chosen) : chosen
}

const main = async (patterns: readonly string[], options: CommandOptions): Promise<void> => {
  for (const [name, value] of Object.entries(FASTER_START_ENVIRONMENT)) process.env[name] ??= value
  if (options.slowest) return print(slowestText(readCosts()))
  const temporary = openTemporaryFiles()
  if (temporary !== undefined) process.env['TMPDIR'] = temporary.folder
  process.once('exit', () => temporary?.remove())
  if (options.repeat) process.env['TEST_BREADTH'] = 'full'
  const files = selectedFiles(filesOf(patterns), options)
  if (files.length === 0) process.stderr.write(`No test file matches ${patterns.join(' ')}.\n`)
  process.exitCode = files.length > 0 && (await runFiles(files, options)) ? 0 : 1
}

await new Command('npm test --')
  .description('Runs test files in several processes and lists the twenty slowest.')
  .argument('[files...]', 'test files, or glob patterns of test files (default: all files except the soak tests)')
  .option('-g, --grep <text>', 'run only the test cases whose full name matches')
  .option('--unit', `run only files that need no other process, with ${UNIT_MAX_MS / MS_PER_SECOND} s for a case`)
  .option('--repeat', 'run only files with cases of many repetitions, and all of these, as the soak run does')
  .option('--workers <count>', 'number of processes that run test files', positiveNumber, WORKERS)
  .option('--file-max-ms <ms>', 'time limit for one file', positiveNumber, FILE_MAX_MS)
  .option('--end-max-ms <ms>', 'time limit for the end of a process after its last file', positiveNumber, END_MAX_MS)
  .option('--record', 'save the times in test/run/costs.json; later runs start with the slowest files')
  .option('--once', 'run no failed file a second time, which shows how steady the cases are')
  .option('--slowest', 'run nothing; list the twenty slowest files of the recorded run')
  .action(main)
  .parseAsync()
