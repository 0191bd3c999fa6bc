import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import type { Command } from 'commander'
import { readAddresses } from '../../src/compose/addressesFile.ts'
import { filesUnder } from '../architecture/repository.ts'
import { eventually } from '../support/eventually.ts'
import { removeFolder } from '../support/folders.ts'
import { NPM } from './cli.ts'

/** The shell blocks of the documents, run as they stand but for the address, the data directory and `npm ci`. */

const root = fileURLToPath(new URL('../../', import.meta.url))
const BLOCK = /^```sh *(?<title>\w*)\n(?<code>[^]*?)^```$/gm
const DOCUMENTED_API = 'http://localhost:8080'
/** A few of the invoices of the demo, whose whole run has a test of its own. */
const DEMO_INVOICES = 10
/** The heads are signed while a service writes; one second instead of ten. */
const SETTINGS = { PORT: '0', LEDGER_PROCESSES: '1', EVIDENCE_HEADS_EVERY: '1s', METRICS_PORT: 'off' }
const FIRST_HOUR_BLOCKS = 21

/** By document and number of the block: why it is not run here. */
const NOT_RUN: Readonly<Record<string, string>> = {
  'scripts/deploy/README.md 1': 'needs a Kubernetes cluster; test/scripts/deploy.test.ts renders the chart',
  'CONTRIBUTING.md 1': 'needs podman; test/soak/containers.test.ts runs these commands',
  'src/processes/SUBSCRIBING.md 3': 'needs a Kafka broker; test/faults/consume.test.ts runs these commands with one',
  'src/embedded/issuer/README.md 2': 'needs the code that a browser is given; test/identity/pkce.test.ts redeems one',
  ...Object.fromEntries(
    Array.from({ length: FIRST_HOUR_BLOCKS }, (_, n) => [
      `scripts/ledger/FIRST_HOUR.md ${n + 1}`,
      'test/scripts/firstHour.test.ts runs it',
    ]),
  ),
  ...Object.fromEntries(
    [1, 2, 3, 4].map(n => [`scripts/ledger/BACKUP.md ${n}`, 'test/scripts/backup.test.ts runs it']),
  ),
  ...Object.fromEntries(
    [1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12].map(n => [
      `scripts/ledger/DISASTER.md ${n}`,
      'test/faults/disaster.test.ts and test/soak/disaster*.test.ts run it',
    ]),
  ),
  'scripts/ledger/DISASTER.md 9': 'needs the programs of Postgres',
  ...Object.fromEntries(
    [5, 6, 7, 8].map(n => [`scripts/ledger/BACKUP.md ${n}`, 'needs an EventStoreDB and the programs of Postgres']),
  ),
}

/** By document and number of the block: what its output promises. */
const PROMISES: Readonly<Record<string, readonly RegExp[]>> = {
  'README.md 2': [/paid twice 0/, /trial balance over \d+ accounts: USD 0\.00/],
  'README.md 3': [/"state":"approved"/, /"state":"succeeded"/, /"type":"invoice\.paid"/],
  'src/processes/SUBSCRIBING.md 1': [/"topic":"ledger\.subscription\.sub_/, /"dead_letter_topic":"/],
  'src/processes/SUBSCRIBING.md 2': [/[1-9]\d* new facts/, /^The copy is complete\.$/m],
  'src/evidence/AUDITING.md 1': [/covered by the head of [\d,]+ events/, /^Intact\.$/m],
  'src/embedded/issuer/README.md 1': [/\/oauth\/auth\?response_type=code&client_id=web&\S*code_challenge=[\w-]{43}&/],
}

/** Every fenced block, with its language. */
const FENCE = /^```(?<language>\w*).*\n[^]*?^```$/gm
/** A command of the command line in a code span: its words and options. */
const COMMAND = /`(?:npm run (?:-s )?)?ledger (?:-- )?(?<words>[a-z][a-z- ]*[a-z])(?<rest>[^`]*)`/g
const OPTION = /--[a-z-]+/g

const camelCase = (name: string): string => name.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** The help of a command of scripts/ledger.ts, or of a part of it; undefined if there is none. */
const helpOf = async ([name = '', part]: readonly string[]): Promise<string | undefined> => {
  const module = `./ledger/${camelCase(name)}.ts`
  if (!(await readFile(join(root, 'scripts/ledger.ts'), 'utf8')).includes(`import('${module}')`)) return undefined
  const { [`${camelCase(name)}Command`]: command }: Readonly<Record<string, Command>> = await import(
    `../../scripts/${module}`
  )
  return (part === undefined ? command : command?.commands.find(each => each.name() === part))?.helpInformation()
}

type Block = { readonly name: string; readonly code: string }

const blocksOf = async (path: string): Promise<Block[]> => {
  const text = await readFile(join(root, path), 'utf8')
  return [...text.matchAll(BLOCK)].map(({ groups }, index) => ({
    name: `${path} ${index + 1}`,
    code: groups?.['code'] ?? '',
  }))
}

describe('the shell blocks of the documents', () => {
  let folder: string
  let dataDir: string
  let api: string
  let environment: NodeJS.ProcessEnv
  const blocks = new Map<string, string>()
  const outputs = new Map<string, string>()

  const start = (code: string) => {
    const child = spawn('bash', ['-euo', 'pipefail', '-c', code], { cwd: folder, env: environment, detached: true })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString()
      })
    child.stdin.end()
    return { child, output: () => output, ended: once(child, 'close').then(([status]) => status as number | null) }
  }
  let service: ReturnType<typeof start>

  before(async () => {
    const documents = filesUnder('').filter(path => path.endsWith('.md'))
    for (const { name, code } of (await Promise.all(documents.map(blocksOf))).flat()) blocks.set(name, code)
    folder = await mkdtemp(join(tmpdir(), 'ledger-documents-'))
    dataDir = join(folder, '.data')
    environment = { ...process.env, ...SETTINGS, LEDGER_DATA_DIR: dataDir, ROOT: root, NODE_ENV: 'development' }
    service = start(`cd "$ROOT"; ${(blocks.get('README.md 1') ?? '').replace('npm ci && ', 'exec ')}`)
    await eventually(() => {
      if (service.child.exitCode !== null) throw new Error(service.output())
      return /^ready$/m.test(service.output())
    })
    api = (await readAddresses(dataDir))?.api ?? expect.fail('The service has no address.')
  })
  after(async () => {
    process.kill(-(service.child.pid ?? 0), 'SIGINT')
    await service.ended
    await removeFolder(folder)
  })

  const run = async (name: string): Promise<string> => {
    const text = blocks.get(name) ?? expect.fail(`There is no block ${name}.`)
    const code = text
      .replaceAll(DOCUMENTED_API, api)
      .replaceAll(/(?<= )\.data\//g, `${dataDir}/`)
      .replace('npm run demo', `npm run demo -- --limit ${DEMO_INVOICES}`)
      // The block waits a second for the published fact, which a busy machine may exceed.
      .replace(/^sleep 1$/m, 'sleep 4')
    const { output, ended } = start(NPM + code)
    expect(await ended, output()).to.equal(0)
    return output()
  }

  it('are each run here, or are named with the reason', () => {
    const named = ['README.md 1', ...Object.keys(PROMISES), ...Object.keys(NOT_RUN)]
    expect([...blocks.keys()].toSorted()).to.deep.equal(named.toSorted())
  })

  it('have a language for which a test exists: sh here, ts in the test of the client, none for maps', async () => {
    const others: string[] = []
    for (const path of filesUnder('').filter(name => name.endsWith('.md')))
      for (const { groups } of (await readFile(join(root, path), 'utf8')).matchAll(FENCE)) {
        const language = groups?.['language'] ?? ''
        if (!['sh', ''].includes(language)) others.push(`${path} ${language}`)
      }
    expect(others).to.deep.equal(['scripts/client/README.md ts'])
  })

  for (const [name, promises] of Object.entries(PROMISES))
    it(`do what they promise: ${name}`, async () => {
      const output = await run(name)
      outputs.set(name, output)
      for (const promise of promises) expect(output).to.match(promise)
    })

  it('print an address at which the login begins', async () => {
    const output = outputs.get('src/embedded/issuer/README.md 1') ?? ''
    const address = output.split('\n').find(line => line.startsWith(`${api}/oauth/auth`)) ?? ''
    const { status, headers } = await fetch(address, { redirect: 'manual' })
    expect(status).to.be.oneOf([302, 303])
    expect(headers.get('location')).to.match(/interaction/)
  })
})

describe('the commands in the texts of the documents', () => {
  it('exist, with their options', async () => {
    const missing = new Set<string>()
    const helps = new Map<string, Promise<string | undefined>>()
    const help = (words: readonly string[]): Promise<string | undefined> => {
      const name = words.join(' ')
      const known = helps.get(name) ?? helpOf(words)
      helps.set(name, known)
      return known
    }
    for (const path of filesUnder('').filter(name => name.endsWith('.md')))
      for (const [, words = '', rest = ''] of (await readFile(join(root, path), 'utf8')).matchAll(COMMAND)) {
        const names = words.replace(/ --?[a-z-]*.*$/, '').split(' ')
        const text = (await help(names.slice(0, 2))) ?? (await help(names.slice(0, 1)))
        const options = [...`${words}${rest}`.matchAll(OPTION)].map(([option]) => option)
        if (text === undefined || options.some(option => !text.includes(option)))
          missing.add(`${path}: ${words}${rest}`)
      }
    expect([...missing]).to.deep.equal([])
    expect(helps.size).to.be.above(10)
  })
})
