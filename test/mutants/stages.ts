import { globSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { found } from '../simulation/found.ts'
import { affectedBy, createDistances, isOfLayer, startsProcesses, type TestFile } from './affectedTests.ts'
import { failedTestIn } from './mochaReport.ts'
import type { Mutant } from './mutants.ts'

/** The kinds of test that are to notice a bug. Each stops at its first failure. */

export type Command = readonly string[]

export type Failure = {
  /** The test or seed that failed, and how, in one line. */
  readonly by: string
  /** The same again and no more: it must fail once more, and pass without the bug, or the failure says nothing. */
  readonly again: Command
}

export type Stage = {
  readonly name: string
  /** The quick commands come first; those after them are run when nothing has failed so far. */
  readonly commandsFor: (bug: Mutant) => readonly Command[]
  readonly failureIn: (command: Command, output: string) => Promise<Failure>
  /** A part of the work of any command, to see how fast the machine is, and how many of it a command has at most. */
  readonly sample?: { readonly command: Command; readonly times: number }
}

export const NAMED_RUNS = 'named runs'
export const STAGES: readonly string[] = [NAMED_RUNS, 'unit tests', 'contracts', 'simulation']

/** Unit tests load some of the code and no whole service. */
const UNIT_FOLDERS = 'streams,projections,commands,feeds,processes,http,identity'
const WHOLE_SERVICE = 'src/compose.ts'

/** The suites of each port, on every implementation that needs no broker outside. */
const CONTRACT_SUITES = [
  'test/support/memoryStore.test.ts',
  'test/simulation/contracts.test.ts',
  'test/adapters/{eventstoredb,eventstoredbAnswers,files,postgres,postgresSnapshot}.test.ts',
]

/** The contract's rows over a real socket. They load every file, and count for what only a caller can see. */
export const HTTP_SUITES = [
  'request/conditional',
  'access/rateLimits',
  'resources/collection',
  'resources/reading',
  'resources/readModelWait',
  'access/identityMatrix',
].map(name => `test/http/${name}.test.ts`)
const SEEN_BY_CALLERS = /^(?:src\/http|projections)\//

const REPORT = 'report.xml'
const LINE_MAX = 200

const inOneLine = (text: string): string => text.replaceAll(/\s+/g, ' ').trim().slice(0, LINE_MAX)

type Places = { readonly folder: string; readonly scratch: string }
/** Files that are run together, for a bug in this file. */
type Group = (file: string) => readonly string[]

/** Mocha runs the files in the order given. */
const mochaStage = (name: string, groups: readonly Group[], { folder, scratch }: Places): Stage => {
  const report = join(scratch, REPORT)
  const mocha = (files: readonly string[]): Command => [
    'mocha',
    '--bail',
    '--reporter',
    'xunit',
    '--reporter-option',
    `output=${report}`,
    ...files,
  ]
  return {
    name,
    commandsFor: ({ file }) =>
      groups.map(group => group(file)).flatMap(files => (files.length === 0 ? [] : [mocha(files)])),
    failureIn: async command => {
      const text = await readFile(report, 'utf8').catch(() => '')
      await rm(report, { force: true })
      const failed = failedTestIn(text)
      if (failed === undefined) return { by: 'the tests did not come to their end', again: command }
      return { by: inOneLine(`${failed.title}: ${failed.message}`), again: mocha([relative(folder, failed.file)]) }
    },
  }
}

const FOUND_TEST = 'test/simulation/found.test.ts'

/** The runs that are kept of a defect that the simulation has found, for a bug that is one of these. */
const namedRunsStage = (places: Places): Stage => {
  const { name, commandsFor, failureIn } = mochaStage(NAMED_RUNS, [() => [FOUND_TEST]], places)
  return {
    name,
    commandsFor: bug =>
      found.some(one => one.bug === bug.name) ? commandsFor(bug).map(command => [...command, '--fgrep', bug.name]) : [],
    failureIn: async (command, output) => ({ ...(await failureIn(command, output)), again: command }),
  }
}

const SEED = /^seed (?<number>\d+)/m
const BROKEN = /^ *BROKEN: .*\n.*/m
const SAMPLE_SEEDS = 10

const simulationStage = (seeds: number): Stage => {
  const simulate = (...which: readonly string[]): Command => [
    'node',
    'test/simulation/main.ts',
    '--no-shrink',
    '--fail-fast',
    '--seeds',
    ...which,
  ]
  return {
    name: 'simulation',
    commandsFor: () => [simulate(String(seeds))],
    failureIn: (command, output) => {
      const seed = SEED.exec(output)?.groups?.['number']
      if (seed === undefined) return Promise.resolve({ by: inOneLine(output.slice(-LINE_MAX)), again: command })
      const by = inOneLine(`seed ${seed}: ${BROKEN.exec(output)?.[0] ?? ''}`)
      return Promise.resolve({ by, again: simulate('1', '--from', seed) })
    },
    sample: { command: simulate(String(SAMPLE_SEEDS)), times: seeds / SAMPLE_SEEDS },
  }
}

export const createStages = (places: Places, seeds: number): readonly Stage[] => {
  const distancesFrom = createDistances(places.folder)
  const testsOf = (globs: readonly string[]): readonly TestFile[] =>
    globs
      .flatMap(glob => globSync(glob, { cwd: places.folder }))
      .toSorted()
      .map(path => ({ path, loads: distancesFrom(path) }))
  const units = testsOf([`test/{${UNIT_FOLDERS}}/**/*.test.ts`]).filter(({ loads }) => !loads.has(WHOLE_SERVICE))
  const suites = testsOf(CONTRACT_SUITES)
  const quick: Group = file =>
    affectedBy(
      file,
      units.filter(test => !startsProcesses(test)),
    )
  // They take longer than all others together, and count for the layer that they are written for.
  const slow: Group = file =>
    affectedBy(
      file,
      units.filter(test => startsProcesses(test) && isOfLayer(test, file)),
    )
  const overHttp: Group = file => (SEEN_BY_CALLERS.test(file) ? HTTP_SUITES : [])
  return [
    namedRunsStage(places),
    mochaStage('unit tests', [quick, slow], places),
    mochaStage('contracts', [file => affectedBy(file, suites), overHttp], places),
    simulationStage(seeds),
  ]
}
