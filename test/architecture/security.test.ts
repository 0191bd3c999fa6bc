import parsers from '@stoplight/spectral-parsers'
import { expect } from 'chai'
import { filesUnder, sourceOf } from './repository.ts'

/** The threat model names tests that exist, and the workflows of GitHub pin what they run and ask for few rights. */

const RISKS = Array.from({ length: 10 }, (_, index) => `API${index + 1}`)
const PINNED = /^[\w-]+\/[\w/-]+@[0-9a-f]{40}$/

describe('the threat model', () => {
  const rows = sourceOf('.github/SECURITY.md')
    .text.split('\n')
    .filter(line => line.startsWith('| API'))

  it('has a row for each risk of the OWASP API Security Top 10, in order', () => {
    expect(rows.map(row => /^\| (API\d+) /.exec(row)?.[1])).to.deep.equal(RISKS)
  })

  it('names at least one test of each row, and only tests that exist', () => {
    const tests = new Set(filesUnder('test').filter(path => path.endsWith('.test.ts')))
    for (const row of rows) {
      const named = [...(row.split('|')[3] ?? '').matchAll(/`([^`]+)`/g)].map(([, path = '']) => path)
      expect(named.length, row).to.be.at.least(1)
      expect(named.filter(path => !tests.has(path))).to.deep.equal([])
    }
  })
})

type Job = {
  readonly permissions?: Readonly<Record<string, string>>
  readonly steps: readonly { readonly uses?: string; readonly run?: string }[]
}
type Workflow = { readonly permissions?: object; readonly jobs: Readonly<Record<string, Job>> }

const workflowIn = (text: string): Workflow => parsers.Yaml.parse(text).data as Workflow

describe('the workflows', () => {
  const texts = filesUnder('.github/workflows').map(path => sourceOf(path).text)
  const jobs = texts.flatMap(text => Object.values(workflowIn(text).jobs))

  it('pin every action by its commit, and name its version', () => {
    const used = texts.flatMap(text => [...text.matchAll(/uses: (\S+)(.*)$/gm)])
    expect(used.length).to.be.at.least(5)
    for (const [, action = '', comment] of used) {
      expect(action).to.match(PINNED)
      expect(comment, action).to.match(/^ # v\d+\.\d+\.\d+$/)
    }
    expect(jobs.flatMap(({ steps }) => steps).filter(({ uses }) => uses !== undefined)).to.have.lengthOf(used.length)
  })

  it('give each job its own rights, and the right to write to none that runs code of the project', () => {
    for (const text of texts) expect(workflowIn(text).permissions).to.deep.equal({})
    for (const { permissions = {}, steps } of jobs) {
      expect(permissions).not.to.deep.equal({})
      const canWrite = Object.values(permissions).includes('write')
      const runsCode = steps.some(
        ({ uses = '', run = '' }) => uses.startsWith('actions/checkout@') || /npm|\.ci\//.test(run),
      )
      expect(canWrite && runsCode).to.equal(false)
    }
  })
})
