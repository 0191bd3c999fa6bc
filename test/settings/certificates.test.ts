import { X509Certificate } from 'node:crypto'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { checkCertificate } from '../../scripts/ledger/doctor/machine.ts'
import { certificateFilesOf, readCertificates } from '../../src/settings/certificates.ts'
import { removeFolder } from '../support/folders.ts'
import { selfSigned } from '../support/selfSigned.ts'

const DAY_MS = 24 * 60 * 60 * 1_000

describe('the certificates that the settings name', () => {
  let folder: string
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'ledger-certificates-'))
  })
  after(() => removeFolder(folder))

  it('are read with the time at which they expire, from both connection strings', async () => {
    const { cert } = selfSigned()
    const file = join(folder, 'ca.pem')
    await writeFile(file, `${cert}\n`)
    const expires_at = new X509Certificate(cert).validToDate.toISOString()
    const eventStoreUrl = `esdb://a:2113,b:2113?tls=true&TlsCaFile=${encodeURIComponent(file)}`
    const databaseUrl = `postgres://db/ledger?sslmode=verify-full&sslrootcert=${join(folder, 'missing.pem')}`
    const files = certificateFilesOf({ EVENTSTORE_URL: eventStoreUrl, DATABASE_URL: databaseUrl })
    expect(await readCertificates(files)).to.deep.equal([
      { name: 'EVENTSTORE_URL tlsCAFile', expires_at },
      { name: 'DATABASE_URL sslrootcert', expires_at: null },
    ])
    expect(certificateFilesOf({})).to.deep.equal([])
  })

  it('are a finding of doctor from 30 days before they expire, and when they cannot be read', () => {
    const now = Date.parse('2026-11-27T00:00:00Z')
    const after = (days: number) => ({ name: 'X', expires_at: new Date(now + days * DAY_MS).toISOString() })
    const isOk = (one: Parameters<typeof checkCertificate>[0]): boolean => checkCertificate(one, now).status === 'ok'
    expect([after(31), after(30), after(29), after(-1), { name: 'X', expires_at: null }].map(isOk)).to.deep.equal([
      true,
      true,
      false,
      false,
      false,
    ])
  })
})
