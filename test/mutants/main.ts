import { spawn } from 'node:child_process'
import { Command, InvalidArgumentError } from 'commander'
import { copyTree } from './copy.ts'
import { type Mutant, mutants } from './mutants.ts'

/** `npm run mutants`: plants each bug in a copy of the tree, and shows which tests notice and how soon. */

type Stage = { readonly name: string; readonly command: readonly string[] }
type Result = { readonly caught: boolean; readonly seconds: number }

const MS_PER_SECOND = 1_000
const STAGE_MAX_MS = 300_000
const NAME_COLUMN = 66
const STAGE_COLUMN = 16

const stagesOf = (seeds: number): readonly Stage[] => [
  {
    name: 'simulation',
    command: ['node', 'test/simulation/main.ts', '--seeds', String(seeds), '--no-shrink', '--fail-fast'],
  },
  {
    name: 'contracts',
    command: [
      'mocha',
      '--bail',
      'test/support/memoryStore.test.ts',
      'test/simulation/contracts.test.ts',
      'test/adapters/postgres.test.ts',
    ],
  },
  {
    name: 'unit tests',
    command: ['mocha', '--bail', 'test/{streams,commands,feeds,processes,projections}/*.test.ts'],
  },
]

/** A bug is caught when the command fails. One that makes it run for ever is caught too. */
const run = (folder: string, { command: [program = '', ...args] }: Stage): Promise<Result> =>
  new Promise((resolve, reject) => {
    const beganMs = performance.now()
    const env = { ...process.env, PATH: `${folder}/node_modules/.bin:${process.env['PATH'] ?? ''}` }
    const child = spawn(program, args, { cwd: folder, env, stdio: 'ignore' })
    const late = setTimeout(() => child.kill('SIGKILL'), STAGE_MAX_MS)
    child.on('error', reject)
    child.on('exit', code => {
      clearTimeout(late)
      resolve({ caught: code !== 0, seconds: (performance.now() - beganMs) / MS_PER_SECOND })
    })
  })

const cellOf = ({ caught, seconds }: Result): string => `${caught ? 'caught' : 'missed'} ${seconds.toFixed(0)} s`

const print = (line: string): void => void process.stdout.write(`${line}\n`)

const number = (text: string): number => {
  const value = Number(text)
  if (!(value > 0)) throw new InvalidArgumentError('A number above zero is needed.')
  return value
}

const list = (text: string): readonly string[] => text.split(',')

type Asked = { readonly seeds: number; readonly only?: string; readonly stages?: readonly string[] }

const main = async ({ seeds, only = '', stages: wanted }: Asked): Promise<void> => {
  const chosen: readonly Mutant[] = mutants.filter(({ name, issue = '' }) => `${issue} ${name}`.includes(only))
  const stages = stagesOf(seeds).filter(({ name }) => wanted === undefined || wanted.includes(name))
  const copy = await copyTree()
  let missed = 0
  process.once('SIGINT', () => void copy.remove().finally(() => process.exit(130)))
  try {
    print(['bug'.padEnd(NAME_COLUMN), ...stages.map(({ name }) => name.padEnd(STAGE_COLUMN))].join(''))
    for (const stage of stages)
      if ((await run(copy.folder, stage)).caught) throw new Error(`${stage.name} fails without any bug.`)
    for (const mutant of chosen) {
      const takeOut = await copy.plant(mutant)
      const results: Result[] = []
      for (const stage of stages) results.push(await run(copy.folder, stage))
      await takeOut()
      if (!results.some(({ caught }) => caught)) missed += 1
      const name = [mutant.issue, mutant.name].filter(Boolean).join(' ')
      print([name.padEnd(NAME_COLUMN), ...results.map(result => cellOf(result).padEnd(STAGE_COLUMN))].join(''))
    }
    print(`\n${chosen.length} bugs, ${missed} missed`)
  } finally {
    await copy.remove()
  }
  process.exitCode = missed > 0 ? 1 : 0
}

await new Command('mutants')
  .description('Plants bugs one at a time in a copy of the tree and shows which tests notice.')
  .option('--seeds <count>', 'how many seeds the simulation runs for each', number, 200)
  .option('--only <text>', 'only bugs whose name or issue has this text')
  .option('--stages <names>', 'of simulation,contracts,unit tests: those to run', list)
  .action(main)
  .parseAsync()
