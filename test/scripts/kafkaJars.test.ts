import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { installJars } from '../../scripts/kafka/jars.ts'
import { temporaryDirectory } from '../support/service.ts'

describe('installing the jars of Kafka', () => {
  let parent: string
  let libsDir: string
  beforeEach(async () => {
    parent = await temporaryDirectory()
    libsDir = join(parent, 'libs')
  })

  const fetched = async (name: string, content: string): Promise<string> => {
    const folder = join(parent, name)
    await mkdir(folder)
    await writeFile(join(folder, 'kafka.jar'), content)
    return folder
  }
  const inode = async (): Promise<number> => (await stat(libsDir)).ino

  it('leaves a complete folder unchanged that another process has installed meanwhile', async () => {
    await installJars(await fetched('first', 'jar'), libsDir)
    const installed = await inode()
    await installJars(await fetched('second', 'jar'), libsDir)
    expect(await inode()).to.equal(installed)
  })

  it('replaces a folder whose jars are not those of its manifest, and leaves no other folder behind', async () => {
    await installJars(await fetched('first', 'jar'), libsDir)
    await writeFile(join(libsDir, 'kafka.jar'), 'damaged')
    await installJars(await fetched('second', 'jar'), libsDir)
    expect(await readFile(join(libsDir, 'kafka.jar'), 'utf8')).to.equal('jar')
    expect(await readdir(parent)).to.deep.equal(['libs'])
  })
})
