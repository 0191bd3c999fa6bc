import { mkdir, writeFile } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg, release } from 'node:os'
import { dirname, resolve } from 'node:path'
import { Argument, Command, InvalidArgumentError } from 'commander'
import { WrongAnswers } from './answers.ts'
import { appends } from './appends.ts'
import { cold } from './cold.ts'
import { growth } from './growth.ts'
import { exporting } from './export.ts'
import { createHarness, type Harness } from './harness.ts'
import { type Measure, type Result, type Size, tableOf } from './measure.ts'
import { payments } from './payments.ts'
import { publish } from './publish.ts'
import { reads } from './reads.ts'
import { rebuild } from './rebuild.ts'
import { steady } from './steady.ts'

/** Measures of the full form, and those that run only when they are named. */
const MEASURES_OF_FULL: readonly Measure[] = [payments, reads, appends, cold, rebuild, publish, exporting]
const MEASURES: readonly Measure[] = [...MEASURES_OF_FULL, growth, steady]
const MEASURES_OF_QUICK: readonly Measure[] = [payments, reads]
const SIZES = [10_000, 1_000_000]
const FULL: Size = { seconds: 9, rounds: 3, payments: 20_000, paymentsToRead: 1_000, sizes: SIZES }
const QUICK: Size = { seconds: 2, rounds: 2, payments: 1_000, paymentsToRead: 200, sizes: SIZES }
const FILES = { full: '.data/bench.json', quick: '.data/bench-quick.json' } as const
const INTERRUPTED = 130

type Options = Partial<Pick<Size, 'seconds' | 'rounds' | 'payments' | 'sizes'>> & {
  readonly only?: readonly string[]
  readonly json?: string
}

const positive = (text: string): number => {
  const number = Number(text)
  if (Number.isFinite(number) && number > 0) return number
  throw new InvalidArgumentError('A number above zero.')
}

const positiveInteger = (text: string): number => {
  const number = positive(text)
  if (Number.isInteger(number)) return number
  throw new InvalidArgumentError('An integer above zero.')
}

const positiveIntegers = (text: string): number[] => text.split(',').map(positiveInteger)

const named = (text: string): string[] => {
  const names = text.split(',')
  const unknown = names.find(name => !MEASURES.some(measure => measure.name === name))
  if (unknown === undefined) return names
  throw new InvalidArgumentError(`One of ${MEASURES.map(({ name }) => name).join(', ')}.`)
}

const described = MEASURES.map(({ name, description: what }) => `  ${name.padEnd(9)} ${what}`).join('\n')

const started: Harness[] = []
const begun = performance.now()
const log = (line: string): void => {
  process.stderr.write(`${((performance.now() - begun) / 1000).toFixed(0).padStart(4)} s  ${line}\n`)
}
const print = (text: string): void => void process.stdout.write(`${text}\n`)

const machine = () => ({
  cpu: cpus()[0]?.model ?? 'unknown',
  cores: availableParallelism(),
  system: `${process.platform} ${release()}`,
  node: process.version,
  /** Before the measurements: above zero, other programs were running. */
  loadAverage: loadavg(),
})

const save = async (file: string, report: object): Promise<void> => {
  const path = resolve(file)
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, `${JSON.stringify(report, null, 2)}\n`)
}

const runMeasures = async (harness: Harness, measures: readonly Measure[], size: Size): Promise<Result[]> => {
  const results: Result[] = []
  try {
    for (const measure of measures) results.push(await measure.run(harness, size))
  } finally {
    await harness.stop()
  }
  return results
}

const compare = async (form: 'full' | 'quick', { only, json, ...size }: Options): Promise<void> => {
  const isQuick = form === 'quick'
  const whole: Size = { ...(isQuick ? QUICK : FULL), ...size }
  const whenNoneIsNamed = isQuick ? MEASURES_OF_QUICK : MEASURES_OF_FULL
  const measures = only === undefined ? whenNoneIsNamed : MEASURES.filter(({ name }) => only.includes(name))
  const before = machine()
  const harness = await createHarness(log, { withKafka: !isQuick })
  started.push(harness)
  const results = await runMeasures(harness, measures, whole)
  const rows = results.flatMap(result => result.rows)
  const compared = results.filter(({ columns }) => columns === undefined).flatMap(result => result.rows)
  if (compared.length > 0) print(tableOf(compared))
  for (const result of results) if (result.columns) print(`\n${tableOf(result.rows, result.columns)}`)
  const details = Object.assign({}, ...results.map(result => result.details)) as object
  const report = { at: new Date().toISOString(), machine: before, size: whole, rows, ...details }
  await save(json ?? FILES[form], report)
  process.exitCode = rows.every(({ met }) => met !== false) ? 0 : 1
}

const main = async (form: 'full' | 'quick', options: Options): Promise<void> => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      log('ending the processes that were started')
      void Promise.all(started.map(harness => harness.stop())).finally(() => process.exit(INTERRUPTED))
    })
  try {
    await compare(form, options)
  } catch (error) {
    if (!(error instanceof WrongAnswers)) throw error
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 2
  }
}

await new Command('bench')
  .description('Measures the service against references on the same machine, side by side, and prints one table.')
  .addArgument(
    new Argument('[form]', 'quick: payments and one read, in a minute, without Kafka')
      .choices(['full', 'quick'])
      .default('full'),
  )
  .option('--only <names>', 'some of the measures, separated by commas', named)
  .option('--seconds <seconds>', `for each side of a comparison, over all rounds (${FULL.seconds})`, positive)
  .option('--rounds <count>', `how often the sides alternate (${FULL.rounds})`, positiveInteger)
  .option(
    '--payments <count>',
    `how long a log "rebuild" and "publish" go through; "export" has 50 rows for each (${FULL.payments})`,
    positiveInteger,
  )
  .option('--sizes <counts>', `the payments in the ledgers that "growth" compares (${SIZES.join()})`, positiveIntegers)
  .option('--json <file>', `where the figures go beside the table (${FILES.full})`)
  .addHelpText(
    'after',
    `\nMeasures:\n${described}\n\nGoals are ratios where machines differ. Exit code 1: a goal was missed; 2: answers were ` +
      'wrong, and nothing is reported.',
  )
  .action(main)
  .parseAsync()
