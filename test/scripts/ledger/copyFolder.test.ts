import { statSync } from 'node:fs'
import { lstat, mkdir, readdir, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { expect } from 'chai'
import { type CopyOptions, copyFolder } from '../../../scripts/ledger/backup/copyFolder.ts'
import { emptyFolder, tidyUp } from './fixtures.ts'

/** The copy of a folder whose files a server changes meanwhile. */

const BIG_BYTES = 256 * 1024 ** 2

describe('copyFolder', () => {
  let from: string
  let to: string
  beforeEach(async () => {
    const folder = await emptyFolder()
    from = join(folder, 'from')
    to = join(folder, 'to')
    await mkdir(from)
  })
  after(tidyUp)

  const copied = async (options: Partial<CopyOptions> = {}): Promise<readonly number[]> => {
    const bytes: number[] = []
    const { signal } = new AbortController()
    await copyFolder({ from, to, isWanted: () => true, signal, onFile: size => void bytes.push(size), ...options })
    return bytes
  }

  /** A file without blocks on the disk. */
  const writeBig = async (): Promise<void> => {
    await writeFile(join(from, 'big'), '')
    await truncate(join(from, 'big'), BIG_BYTES)
  }

  const partWritten = async (): Promise<void> => {
    for (;;) {
      const size = statSync(join(to, 'big'), { throwIfNoEntry: false })?.size ?? 0
      if (size > 0) return
      await setImmediate()
    }
  }

  const messageOf = (work: Promise<unknown>): Promise<string> =>
    work.then(
      () => '',
      (error: unknown) => (error as Error).message,
    )

  it('copies a file up to its new end when it is truncated meanwhile', async () => {
    await writeBig()
    const copying = copied()
    await partWritten()
    await truncate(join(from, 'big'), 1)
    const [bytes = 0, ...others] = await copying
    expect(others).to.deep.equal([])
    expect(bytes).to.be.greaterThan(0).and.lessThan(BIG_BYTES)
    expect((await lstat(join(to, 'big'))).size).to.equal(bytes)
  })

  it('stops within a file when the signal aborts', async () => {
    await writeBig()
    const stop = new AbortController()
    const copying = messageOf(copied({ signal: stop.signal }))
    await partWritten()
    stop.abort()
    expect(await copying).to.match(/aborted/)
    expect((await lstat(join(to, 'big'))).size).to.be.lessThan(BIG_BYTES)
  })

  it('leaves out files and folders that are removed meanwhile', async () => {
    for (const name of ['a', 'b']) await writeFile(join(from, name), name)
    await mkdir(join(from, 'c'))
    const removed = Promise.withResolvers<void>()
    const isWanted = (path: string): boolean => {
      if (path === 'c')
        void Promise.all(['a', 'c'].map(name => rm(join(from, name), { recursive: true }))).then(() =>
          removed.resolve(),
        )
      return true
    }
    const bytes = await copied({ isWanted })
    await removed.promise
    expect(await readFile(join(to, 'b'), 'utf8')).to.equal('b')
    expect(bytes).to.have.lengthOf((await readdir(to)).filter(name => name !== 'c').length)
  })

  it('keeps modes, and makes files and folders of symbolic links', async () => {
    const elsewhere = await emptyFolder()
    await mkdir(join(elsewhere, 'disk'), { mode: 0o700 })
    await writeFile(join(elsewhere, 'disk', 'heads.jsonl'), 'heads', { mode: 0o600 })
    await mkdir(join(from, 'evidence'), { mode: 0o750 })
    await symlink(join(elsewhere, 'disk', 'heads.jsonl'), join(from, 'evidence', 'heads.jsonl'))
    await symlink(join(elsewhere, 'disk'), join(from, 'linked'))
    expect(await copied()).to.deep.equal([5, 5])
    for (const [path, mode] of [
      ['evidence', 0o750],
      ['evidence/heads.jsonl', 0o600],
      ['linked', 0o700],
      ['linked/heads.jsonl', 0o600],
    ] as const) {
      const actual = await lstat(join(to, path))
      expect(actual.isSymbolicLink(), path).to.equal(false)
      expect(actual.mode & 0o777, path).to.equal(mode)
    }
    expect(await readFile(join(to, 'evidence/heads.jsonl'), 'utf8')).to.equal('heads')
  })

  it('refuses symbolic links that lead nowhere, back, or to the copy', async () => {
    const link = join(from, 'link')
    for (const [target, complaint] of [
      [join(from, 'nothing'), `${link} is a symbolic link to a file that is not there.`],
      ['.', `${link} leads to a folder that contains ${from}, and cannot be copied there.`],
      ['..', `${link} leads to a folder that contains ${to}, and cannot be copied there.`],
    ] as const) {
      await symlink(target, link)
      expect(await messageOf(copied())).to.equal(complaint)
      await rm(link)
      await rm(to, { recursive: true })
    }
  })
})
