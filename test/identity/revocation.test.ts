import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { decodeProtectedHeader } from 'jose'
import { openDatabase } from '../../src/adapters/postgres/database.ts'
import { findFreePort } from '../../src/embedded/freePorts.ts'
import { createIssuer } from '../../src/embedded/issuer/issuer.ts'
import { rotateSigningKey } from '../../src/embedded/issuer/signingKey.ts'
import { openRevocations, type Revocable, tokenName } from '../../src/identity/revocations.ts'
import { openTokenVerifier } from '../../src/identity/tokenVerifier.ts'
import type { Database } from '../../src/ports.ts'
import { eventually } from '../support/eventually.ts'
import { everyRow } from '../support/databaseDump.ts'
import { formOf } from './browser.ts'
import { type Delegation, openDelegation } from './oauthFlows.ts'

const AUDIENCE = 'payment-ledger'

const named = (token: string): Revocable => {
  const { jti, grant } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
  return { tokenId: String(jti), grant: grant === undefined ? undefined : String(grant) }
}

const kidOf = (token: string): unknown => decodeProtectedHeader(token).kid

describe('identity: revocation', () => {
  let d: Delegation
  let database: Database

  before(async () => {
    d = await openDelegation()
    database = openDatabase({ connectionString: d.service.addresses.postgres })
  })

  after(() => database.close())

  it('a revoked refresh token revokes its grant: the API refuses its access tokens at once', async () => {
    const [mine, other] = [await d.tokens(), await d.tokens()]
    expect(
      await d.revoke({ client_id: d.clients.web, token: mine.refresh, token_type_hint: 'refresh_token' }),
    ).to.equal(200)
    expect(await d.api(mine.access)).to.equal('token_invalid')
    expect((await d.refresh(mine.refresh)).body['error']).to.equal('invalid_grant')
    expect(await d.api(other.access)).to.equal('ok')
  })

  it('an access token is revoked alone', async () => {
    const { access, refresh } = await d.tokens()
    expect(await d.revoke({ client_id: d.clients.web, token: access })).to.equal(200)
    expect(await d.api(access)).to.equal('token_invalid')
    const next = await d.refresh(refresh)
    expect(await d.api(String(next.body['access_token']))).to.equal('ok')
  })

  it('a workload revokes its own token', async () => {
    const { workload } = d.clients
    const { body } = await d.token({ grant_type: 'client_credentials', scope: 'orders:read' }, d.basic(workload))
    const token = String(body['access_token'])
    expect(await d.api(token)).to.equal('ok')
    expect(await d.revoke({ token }, d.basic(workload))).to.equal(200)
    expect(await d.api(token)).to.equal('token_invalid')
  })

  it('a client revokes only its own tokens, and the response does not reveal others', async () => {
    const { access, refresh } = await d.tokens()
    for (const token of [access, refresh, 'made-up', 'a.b.c', `${access}x`])
      expect(await d.revoke({ client_id: d.clients.second, token }), token).to.equal(200)
    expect(await d.revoke({ token: access }, d.basic(d.clients.server))).to.equal(200)
    expect(await d.revoke({ token: access }, d.basic(d.clients.server, 'wrong'))).to.equal(401)
    expect(await d.revoke({ client_id: d.clients.server, token: access })).to.equal(401)
    expect(await d.revoke({ token: access })).to.equal(400)
    expect(await d.revoke({ client_id: d.clients.web })).to.equal(400)
    expect(await d.api(access)).to.equal('ok')
    expect((await d.refresh(refresh)).status).to.equal(200)
  })

  it('another instance refuses a revoked token within 5 s, also one that accepted it just before', async () => {
    let nowMs = 0
    const elsewhere = await openRevocations({ database, onUnread: () => undefined, monotonicNow: () => nowMs })
    const { access, refresh } = await d.tokens()
    expect(await elsewhere.isRevoked(named(access))).to.equal(false)
    await d.revoke({ client_id: d.clients.web, token: refresh })
    nowMs += 5_000
    expect(await elsewhere.isRevoked(named(access))).to.equal(true)
  })

  it('an outage of the database changes nothing about known revocations, and delays no caller twice', async () => {
    const clock = { nowMs: 0 }
    const state = { isUnavailable: false, asked: 0 }
    const failures: unknown[] = []
    const flaky: Database = {
      ...database,
      sql: async (text, values) => {
        if (!text.startsWith('select')) return database.sql(text, values)
        state.asked++
        if (state.isUnavailable) throw new Error('connection refused')
        return database.sql(text, values)
      },
    }
    const list = await openRevocations({
      database: flaky,
      onUnread: error => failures.push(error),
      monotonicNow: () => clock.nowMs,
    })
    const known = { tokenId: `known-${d.mark}`, grant: undefined }
    await list.revoke(tokenName(known.tokenId))
    expect(await list.isRevoked(known)).to.equal(true)
    state.isUnavailable = true
    clock.nowMs += 60_000
    expect(await list.isRevoked(known)).to.equal(true)
    const requested = state.asked
    for (let n = 0; n < 50; n++) expect(list.isRevoked({ tokenId: 'x', grant: undefined })).to.equal(false)
    expect([state.asked, failures.length]).to.deep.equal([requested, 1])
    state.isUnavailable = false
    clock.nowMs += 1_000
    await list.isRevoked(known)
    expect(state.asked).to.equal(requested + 1)
  })

  it('a dump of the database holds nothing that authenticates, and no user names', async () => {
    const { on, page, verifier } = await d.toConsent()
    const { csrf } = formOf(page)
    const granted = await d.grant()
    const { access, refresh } = await d.tokens()
    await d.refresh(refresh)
    const cookies = [...on.cookies.values()].map(({ value }) => value)
    const clients = await readFile(join(d.dataDir, 'issuer', 'clients.json'), 'utf8')
    const secrets = [...clients.matchAll(/"client_secret": "([^"]+)"/g)].map(([, secret = '']) => secret)
    expect(secrets).to.not.have.length(0)
    const canaries = [...cookies, ...secrets, csrf, verifier, granted.code, granted.verifier, access, refresh]
    const dump = await everyRow(database)
    // The name of a revoked grant shows that the table of the issuer is searched.
    expect(dump).to.include('grant:')
    for (const canary of canaries) {
      expect(canary).to.have.length.above(20)
      expect(dump.includes(canary), canary).to.equal(false)
    }
    expect(dump.includes(Buffer.from(d.users.user).toString('hex'))).to.equal(false)
  })

  describe('over a restart', () => {
    let dataDir: string
    let server: Server
    before(async () => {
      dataDir = await mkdtemp(join(tmpdir(), 'issuer-'))
    })
    after(async () => {
      server.close()
      await rm(dataDir, { recursive: true })
    })

    const start = async (
      issuer?: string,
    ): Promise<{ url: string; embedded: Awaited<ReturnType<typeof createIssuer>> }> => {
      server = createServer()
      // The second start is at the port of the first.
      const port = issuer ? Number(new URL(issuer).port) : await findFreePort('127.0.0.1')
      await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/oauth`
      const embedded = await createIssuer({ issuer: url, audience: AUDIENCE, dataDir })
      server.on('request', (request, response) => {
        request.url = (request.url ?? '').replace(/^\/oauth/, '')
        embedded.handler(request, response, () => response.destroy())
      })
      return { url, embedded }
    }

    const workloadToken = async (url: string): Promise<Response> => {
      const { clients } = JSON.parse(await readFile(join(dataDir, 'issuer', 'clients.json'), 'utf8')) as {
        clients: { client_id: string; client_secret: string }[]
      }
      const { client_id = '', client_secret = '' } = clients[0] ?? {}
      const body = new URLSearchParams({
        grant_type: 'client_credentials',
        scope: 'orders:read',
        client_id,
        client_secret,
      })
      return fetch(`${url}/token`, { method: 'POST', body })
    }

    it('the keys are kept, also those of a rotation while the issuer runs', async () => {
      const { url, embedded } = await start()
      const verifier = await openTokenVerifier({ issuer: url, audience: AUDIENCE, fetchJwks: embedded.jwks })
      const tokenNow = async (): Promise<string> =>
        ((await (await workloadToken(url)).json()) as { access_token: string }).access_token
      const old = await tokenNow()
      expect(await verifier.verify(old)).to.have.property('tenant', 'acme')

      const { signing, retiring } = await rotateSigningKey(dataDir, { now: false })
      expect(retiring).to.have.length(1)
      expect(JSON.stringify(retiring)).to.not.include('"d"')
      await eventually(async () => kidOf(await tokenNow()) === signing.kid)
      const fresh = await tokenNow()
      expect(kidOf(fresh)).to.equal(signing.kid)
      expect((await embedded.jwks()).keys).to.have.length(2)
      for (const token of [old, fresh]) expect(await verifier.verify(token)).to.have.property('tenant', 'acme')

      const last = await rotateSigningKey(dataDir, { now: true })
      const publishedKids = async (): Promise<string[]> => {
        const { keys } = (await (await fetch(`${url}/jwks`)).json()) as { keys: { kid: string }[] }
        return keys.map(({ kid }) => kid)
      }
      await eventually(async () => (await publishedKids())[0] === last.signing.kid)
      expect(await publishedKids()).to.deep.equal([last.signing.kid])
      expect(await verifier.verify(await tokenNow())).to.have.property('tenant', 'acme')
      const late = await openTokenVerifier({ issuer: url, audience: AUDIENCE, fetchJwks: embedded.jwks })
      for (const token of [old, fresh]) expect(await late.verify(token)).to.have.property('fault', 'key_unknown')
      verifier.close()
      late.close()
      server.closeAllConnections()
      server.close()
      const again = await start(url)
      expect(await again.embedded.jwks()).to.deep.equal(await embedded.jwks())
    })
  })
})
