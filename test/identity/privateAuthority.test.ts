import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { diagnosisOf, ledger } from '../scripts/ledger/fixtures.ts'
import { anOrder, clientOf } from '../support/client.ts'
import { removeFolder } from '../support/folders.ts'
import { newAuthority } from '../support/selfSigned.ts'
import { startProcess, temporaryDirectory } from '../support/service.ts'
import { outputUntil } from '../support/starts.ts'
import { claimsFor, generateTestKey, signToken, TEST_AUDIENCE, type TestKey } from '../support/tokens.ts'

/** An issuer over TLS, whose certificate comes from an authority that Node does not know. */

describe('identity: an issuer with a certificate of a private authority', () => {
  const authority = newAuthority('A private authority')
  let folder: string
  let key: TestKey
  let server: Server
  let settings: { readonly OIDC_ISSUER: string; readonly OIDC_AUDIENCE: string; readonly NODE_EXTRA_CA_CERTS: string }

  before(async () => {
    folder = await temporaryDirectory()
    key = await generateTestKey()
    server = createServer(authority.issue(['localhost']), ({ url = '' }, response) => {
      const metadata = { issuer: settings.OIDC_ISSUER, jwks_uri: `${settings.OIDC_ISSUER}/jwks` }
      response.end(JSON.stringify(url.endsWith('/jwks') ? { keys: [key.publicJwk] } : metadata))
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    const file = join(folder, 'authority.pem')
    await writeFile(file, authority.cert)
    settings = {
      OIDC_ISSUER: `https://localhost:${port}`,
      OIDC_AUDIENCE: TEST_AUDIENCE,
      NODE_EXTRA_CA_CERTS: file,
    }
  })
  after(async () => {
    server.closeAllConnections()
    server.close()
    await removeFolder(folder)
  })

  const checkedWith = async (env: Record<string, string>) => {
    const { checks } = diagnosisOf(await ledger(['doctor', '--json'], join(folder, 'none'), env))
    return checks.find(({ check }) => check === 'issuer')
  }

  it('is trusted with NODE_EXTRA_CA_CERTS', async () => {
    expect(await checkedWith(settings)).to.include({ status: 'ok' })
    const dataDir = await temporaryDirectory()
    const service = await startProcess(dataDir, settings)
    try {
      const client = clientOf(service.api, signToken(key, claimsFor(settings.OIDC_ISSUER)))
      expect((await client.post('/orders', anOrder())).status).to.equal(201)
    } finally {
      await service.end('SIGTERM')
      await removeFolder(dataDir)
    }
  })

  it('is named by doctor and by a start without it, with the remedy', async () => {
    const untrusting = { ...settings, NODE_EXTRA_CA_CERTS: '' }
    const remedy = 'Set NODE_EXTRA_CA_CERTS to the file with the certificate of that authority.'
    const cause = 'its certificate was issued by an authority that is not trusted here.'
    const { status, detail, way_out } = (await checkedWith(untrusting)) ?? {}
    expect(status).to.equal('finding')
    expect(`${detail} ${way_out}`).to.include(cause).and.to.include(remedy)
    await outputUntil(
      `Cannot connect to the issuer ${settings.OIDC_ISSUER} (OIDC_ISSUER): ${cause} ${remedy} Trying again.`,
      untrusting,
    )
  })
})
