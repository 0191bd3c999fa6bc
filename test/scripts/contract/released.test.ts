import { execFile } from 'node:child_process'
import { appendFile, cp, mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { expect } from 'chai'
import {
  editedFiles,
  isSupported,
  readReleased,
  release,
  RELEASED,
  releasedDates,
} from '../../../scripts/contract/released.ts'
import { removeFolder } from '../../support/folders.ts'
import { withChange } from './copies.ts'
import { BREAKING } from './plantedChanges.ts'

const VERSION = '2026-11-01'

describe('released contracts', () => {
  let folder: string
  const copied = () => pathToFileURL(`${folder}/`)
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'ledger-contract-'))
    await cp(fileURLToPath(RELEASED), folder, { recursive: true })
  })
  afterEach(() => removeFolder(folder))

  it('are never edited', () => {
    expect(editedFiles()).to.deep.equal([])
  })

  it('are known to be edited by their hash, or to be missing', async () => {
    expect(editedFiles(copied())).to.deep.equal([])
    await appendFile(join(folder, VERSION, 'openapi.json'), '\n')
    expect(editedFiles(copied())).to.deep.equal([`${VERSION}/openapi.json`])
    await writeFile(join(folder, 'SHA256SUMS'), '')
    expect(editedFiles(copied())).to.include.members([`${VERSION}/openapi.json`, `${VERSION}/asyncapi.json`])
  })

  it('are not released twice, nor without being served', () => {
    expect(() => release(VERSION, copied())).to.throw('released already')
    expect(() => release('2001-01-01', copied())).to.throw('is not served')
  })

  it('are written with their hashes', async () => {
    const empty = await mkdtemp(join(tmpdir(), 'ledger-contract-'))
    const files = release(VERSION, pathToFileURL(`${empty}/`))
    expect(files).to.deep.equal([`${VERSION}/openapi.json`, `${VERSION}/asyncapi.json`])
    expect(editedFiles(pathToFileURL(`${empty}/`))).to.deep.equal([])
    expect(JSON.parse(await readFile(join(empty, VERSION, 'openapi.json'), 'utf8'))).to.have.property('openapi')
    await removeFolder(empty)
  })
})

describe('npm run contract', () => {
  const script = fileURLToPath(new URL('../../../scripts/contract.ts', import.meta.url))
  const run = (...args: string[]): Promise<{ code: number; output: string }> =>
    new Promise(resolve => {
      execFile(process.execPath, [script, ...args], { maxBuffer: 2 ** 26 }, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code), output: stdout + stderr }),
      )
    })

  it('passes this code: no released contract is broken', async () => {
    const { code, output } = await run('--json')
    expect([code, JSON.parse(output).ok], output).to.deep.equal([0, true])
  })

  it('fails for a breaking candidate with a sentence about the field, the reason and the remedy', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'ledger-contract-'))
    const planted = BREAKING.find(({ rule }) => rule === 'field-removed')
    if (planted === undefined) throw new Error('No field is removed.')
    for (const version of releasedDates().filter(isSupported)) {
      const { openapi, asyncapi } = withChange(readReleased(version), planted)
      await mkdir(join(folder, version))
      await writeFile(join(folder, version, 'openapi.json'), JSON.stringify(openapi))
      await writeFile(join(folder, version, 'asyncapi.json'), JSON.stringify(asyncapi))
    }
    const { code, output } = await run('--no-lint', '--candidate', folder)
    expect(code).to.equal(1)
    expect(output).to.match(
      /BREAKING field-removed: Invoice\/amount_paid in .*\n {4}The field amount_paid is removed\./,
    )
    expect(output).to.include('A breaking change needs a new version')
    await removeFolder(folder)
  })

  it('prints both documents of a version', async () => {
    const { output } = await run('print', VERSION, 'asyncapi')
    expect(JSON.parse(output)).to.have.nested.property('info.version', VERSION)
  })
})
