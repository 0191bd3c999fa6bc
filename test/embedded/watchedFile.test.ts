import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { openWatchedFile } from '../../src/embedded/issuer/watchedFile.ts'
import { removeFolder, temporaryFolder } from './childProcesses.ts'

describe('a watched file', () => {
  let folder: string
  let path: string
  let failure: Error | undefined
  let errors: unknown[] = []
  const read = async (): Promise<string> => {
    if (failure !== undefined) throw failure
    return readFile(path, 'utf8')
  }

  beforeEach(async () => {
    folder = await temporaryFolder()
    path = join(folder, 'users.json')
    failure = undefined
    errors = []
    await writeFile(path, 'alice, bob')
  })
  afterEach(() => removeFolder(folder))

  it('is read again after a reading that failed, although it has not changed since', async () => {
    const watched = await openWatchedFile(path, read, error => errors.push(error))
    expect(await watched()).to.equal('alice, bob')
    await writeFile(path, 'alice')
    failure = Object.assign(new Error('too many open files'), { code: 'EMFILE' })
    expect(await watched()).to.equal('alice, bob')
    failure = undefined
    expect(await watched()).to.equal('alice')
  })

  it('has each failure reported once, however often it is read', async () => {
    const watched = await openWatchedFile(path, read, error => errors.push(error))
    for (const content of ['{', '{{']) {
      await writeFile(path, content)
      failure = new Error(`not valid: ${content}`)
      for (let times = 0; times < 3; times += 1) await watched()
    }
    expect(errors.map(String)).to.deep.equal(['Error: not valid: {', 'Error: not valid: {{'])
    failure = undefined
    expect(await watched()).to.equal('{{')
  })
})
