import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { addClient, loadClients } from '../../src/embedded/issuer/clients.ts'
import { readOrCreatePrivate } from '../../src/embedded/privateFile.ts'
import { loadSigningKey } from '../../src/embedded/issuer/signingKey.ts'
import { rejectionOf } from '../support/rejection.ts'

describe('identity: reading the files of the embedded issuer', () => {
  let dataDir: string

  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'issuer-'))
  })

  afterEach(async () => await rm(dataDir, { recursive: true }))

  const damage = async (name: string, content: string): Promise<void> => {
    await rm(join(dataDir, 'issuer', name))
    await writeFile(join(dataDir, 'issuer', name), content)
  }

  it('gives two processes that create a file concurrently the content of the first', async () => {
    const { promise: otherHasEnded, resolve } = Promise.withResolvers<void>()
    const slow = readOrCreatePrivate(dataDir, 'secret', async () => {
      await otherHasEnded
      return 'slow'
    })
    expect(await readOrCreatePrivate(dataDir, 'secret', async () => 'fast')).to.equal('fast')
    resolve()
    expect(await slow).to.equal('fast')
    expect(await readdir(dataDir)).to.deep.equal(['secret'])
  })

  it('gives all processes one signing key, and restricts a mode that is too wide', async () => {
    const keys = await Promise.all(Array.from({ length: 8 }, async () => await loadSigningKey(dataDir)))
    expect(new Set(keys.map(({ kid }) => kid))).to.have.property('size', 1)
    const path = join(dataDir, 'issuer', 'signing-key.json')
    await damage('signing-key.json', JSON.stringify(keys[0]))
    expect((await stat(path)).mode & 0o077).to.not.equal(0)
    expect(await loadSigningKey(dataDir)).to.deep.equal(keys[0])
    expect((await stat(path)).mode & 0o777).to.equal(0o600)
  })

  it('has a lock file that others cannot read', async () => {
    await addClient(dataDir, {
      client_id: 'a',
      client_secret: 'x'.repeat(32),
      tenant: 'acme',
      scope: 'orders:read',
    })
    expect((await stat(join(dataDir, 'issuer', 'lock'))).mode & 0o777).to.equal(0o600)
  })

  it('fails with the name of a damaged file, and without its content', async () => {
    await loadSigningKey(dataDir)
    await loadClients(dataDir)
    for (const content of ['{"kty":"EC","d":"c2VjcmV0"}', '{c2VjcmV0', '', '[]']) {
      await damage('signing-key.json', content)
      expect((await rejectionOf(loadSigningKey(dataDir))).message)
        .to.contain('signing-key.json')
        .and.not.contain('c2VjcmV0')
    }
    const client = { client_id: 'a', client_secret: 'c2VjcmV0', tenant: 'acme', scope: 'orders:read' }
    for (const content of [JSON.stringify({ clients: [client] }), '{c2VjcmV0', '{}']) {
      await damage('clients.json', content)
      expect((await rejectionOf(loadClients(dataDir))).message)
        .to.contain('clients.json')
        .and.not.contain('c2VjcmV0')
    }
  })

  it('fails with the name of a folder that cannot be created', async () => {
    const file = join(dataDir, 'file')
    await writeFile(file, '')
    expect((await rejectionOf(loadSigningKey(file))).message)
      .to.contain(file)
      .and.contain('cannot be created')
  })
})
