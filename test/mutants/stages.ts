import { globSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { actual } from '../simulation/bugs.ts'
import { testsAffectedBy, createDistances, isFor, startsProcesses, type TestFile } from './affectedTests.ts'
import { failedTestIn } from './mochaReport.ts'
import type { Mutant } from './mutant.ts'

/** The stages: kinds of tests that should find a bug, from fast to slow. A stage ends with its first failure. */

export type Command = readonly string[]

export type Failure = {
  /** The test or seed that failed, and its message, in one line. */
  readonly by: string
  /** Repeats the failed test alone. The failure counts if this fails again with the bug and passes without it. */
  readonly confirmation: Command
}

export type Stage = {
  readonly name: string
  /** The commands to run one after the other until one fails, the fast ones first. */
  readonly commandsFor: (bug: Mutant) => readonly Command[]
  readonly failureIn: (command: Command, output: string) => Promise<Failure>
  /** A command that measures the speed of the machine, and how many times its work a command of the stage has at most. */
  readonly sample?: { readonly command: Command; readonly times: number }
}

export const RECORDED_RUNS = 'recorded runs'
export const STAGES: readonly string[] = [RECORDED_RUNS, 'unit tests', 'contracts', 'simulation']

/** Tests of these folders are unit tests if they do not load the whole service. */
const UNIT_FOLDERS = 'streams,projections,commands,logIdentity,personalTexts,lib,settings,feeds,processes,http,identity'
const WHOLE_SERVICE = 'src/compose/service.ts'

/** The contract suites of the ports, on every implementation that needs no Kafka broker. */
const CONTRACT_SUITES = [
  'test/support/memoryStore.test.ts',
  'test/simulation/contracts.test.ts',
  'test/adapters/{eventstoredb,eventstoredbAnswers,files,postgres,postgresSnapshot}.test.ts',
]

/** Tests over HTTP. They load every file, so they are run only for bugs whose effect a caller sees. */
export const HTTP_SUITES = [
  'request/entityTags',
  'admission/rateLimits',
  'resources/collection',
  'resources/reading',
  'resources/readModelWait',
  'access/identityMatrix',
].map(name => `test/http/${name}.test.ts`)
const VISIBLE_OVER_HTTP = /^(?:src\/http|projections)\//

const REPORT = 'report.xml'
const LINE_MAX = 200

const asOneLine = (text: string): string => text.replaceAll(/\s+/g, ' ').trim().slice(0, LINE_MAX)

type Folders = { readonly folder: string; readonly scratch: string }
/** The test files to run in one command for a bug in this file. */
type TestFilesFor = (file: string) => readonly string[]

/** A stage of mocha tests, which mocha runs in the given order. */
const mochaStage = (name: string, fileGroups: readonly TestFilesFor[], { folder, scratch }: Folders): Stage => {
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
      fileGroups.map(filesFor => filesFor(file)).flatMap(files => (files.length === 0 ? [] : [mocha(files)])),
    failureIn: async command => {
      const text = await readFile(report, 'utf8').catch(() => '')
      await rm(report, { force: true })
      const failed = failedTestIn(text)
      if (failed === undefined) return { by: 'the tests ended without a report', confirmation: command }
      return {
        by: asOneLine(`${failed.title}: ${failed.message}`),
        confirmation: mocha([relative(folder, failed.file)]),
      }
    },
  }
}

const FOUND_TEST = 'test/simulation/bugs.test.ts'

/** The recorded runs of the simulation (bugs.ts), for bugs that the simulation once found. */
const recordedRunsStage = (folders: Folders): Stage => {
  const { name, commandsFor, failureIn } = mochaStage(RECORDED_RUNS, [() => [FOUND_TEST]], folders)
  return {
    name,
    commandsFor: bug =>
      actual.some(one => one.bug === bug.name)
        ? commandsFor(bug).map(command => [...command, '--fgrep', bug.name])
        : [],
    failureIn: async (command, output) => ({ ...(await failureIn(command, output)), confirmation: command }),
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
      if (seed === undefined) return Promise.resolve({ by: asOneLine(output.slice(-LINE_MAX)), confirmation: command })
      const by = asOneLine(`seed ${seed}: ${BROKEN.exec(output)?.[0] ?? ''}`)
      return Promise.resolve({ by, confirmation: simulate('1', '--from', seed) })
    },
    sample: { command: simulate(String(SAMPLE_SEEDS)), times: seeds / SAMPLE_SEEDS },
  }
}

export const createStages = (folders: Folders, seeds: number): readonly Stage[] => {
  const distancesFrom = createDistances(folders.folder)
  const testsOf = (globs: readonly string[]): readonly TestFile[] =>
    globs
      .flatMap(glob => globSync(glob, { cwd: folders.folder }))
      .toSorted()
      .map(path => ({ path, loads: distancesFrom(path) }))
  const units = testsOf([`test/{${UNIT_FOLDERS}}/**/*.test.ts`]).filter(({ loads }) => !loads.has(WHOLE_SERVICE))
  const suites = testsOf(CONTRACT_SUITES)
  const fast: TestFilesFor = file =>
    testsAffectedBy(
      file,
      units.filter(test => !startsProcesses(test)),
    )
  // These take longer than all others together, so they are run only for bugs in their layer or in files that they import.
  const slow: TestFilesFor = file =>
    testsAffectedBy(
      file,
      units.filter(test => startsProcesses(test) && isFor(test, file)),
    )
  const overHttp: TestFilesFor = file => (VISIBLE_OVER_HTTP.test(file) ? HTTP_SUITES : [])
  return [
    recordedRunsStage(folders),
    mochaStage('unit tests', [fast, slow], folders),
    mochaStage('contracts', [file => testsAffectedBy(file, suites), overHttp], folders),
    simulationStage(seeds),
  ]
}
