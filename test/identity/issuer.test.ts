import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import express from 'express'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import { mintDevToken } from '../../src/embedded/issuer/devToken.ts'
import { createIssuer } from '../../src/embedded/issuer/issuer.ts'
import { rotateSigningKey } from '../../src/embedded/issuer/signingKey.ts'
import { openTokenVerifier } from '../../src/identity/tokenVerifier.ts'
import { rejectionOf } from '../support/rejection.ts'
import { generateTestKey, signToken, TEST_AUDIENCE } from '../support/tokens.ts'

/** The issuer mounted in Express at its path, on a real socket, as in the service. */
const start = async (dataDir: string, audience: string) => {
  const app = express()
  const server = createServer(app)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const origin = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`
  const embedded = await createIssuer({ issuer: `${origin}/oauth`, audience, dataDir })
  app.use('/oauth', embedded.handler)
  app.get('/.well-known/oauth-authorization-server/oauth', (_, response) => void response.json(embedded.metadata))
  app.use((_, response) => void response.status(404).json({ code: 'route_not_found' }))
  const verifier = await openTokenVerifier({ issuer: `${origin}/oauth`, audience })
  const stop = async (): Promise<void> => {
    verifier.close()
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  }
  return { url: `${origin}/oauth`, embedded, verifier, stop }
}

const clientsFile = (dataDir: string): string => join(dataDir, 'issuer', 'clients.json')

type Client = { client_id: string; client_secret: string; tenant: string; scope: string }

const readClients = async (dataDir: string): Promise<Client[]> =>
  JSON.parse(await readFile(clientsFile(dataDir), 'utf8')).clients

const basic = ({ client_id, client_secret }: Client): string =>
  `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString('base64')}`

describe('identity: the embedded issuer', () => {
  let dataDir: string
  let running: Awaited<ReturnType<typeof start>>
  let client: Client

  const ask = async (form: Record<string, string>, headers: Record<string, string> = {}) => {
    const response = await fetch(`${running.url}/token`, {
      method: 'POST',
      headers,
      body: new URLSearchParams({ grant_type: 'client_credentials', ...form }),
    })
    return { status: response.status, headers: response.headers, body: JSON.parse(await response.text()) }
  }

  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'issuer-'))
    running = await start(dataDir, TEST_AUDIENCE)
    const [first] = await readClients(dataDir)
    if (!first) throw new Error('There is no dev client.')
    client = first
  })

  afterEach(async () => {
    await running.stop()
    await rm(dataDir, { recursive: true })
  })

  it('gives a workload a token that the verifier accepts, by both ways to send the secret', async () => {
    const { client_id, client_secret } = client
    const ways = [
      await ask({ scope: 'orders:read payments:write' }, { authorization: basic(client) }),
      await ask({ scope: 'orders:read payments:write', client_id, client_secret }),
    ]
    for (const { status, headers, body } of ways) {
      expect(status).to.equal(200)
      expect(headers.get('cache-control')).to.equal('no-store')
      expect(body).to.include({ token_type: 'Bearer', expires_in: 300, scope: 'orders:read payments:write' })
      expect(decodeProtectedHeader(body.access_token)).to.include({ typ: 'at+jwt', alg: 'ES256' })
      expect(decodeJwt(body.access_token)).to.include({ aud: TEST_AUDIENCE, tenant: 'acme', client_id: 'dev-acme' })
      expect(await running.verifier.verify(body.access_token)).to.deep.equal({
        tenant: 'acme',
        subject: 'dev-acme',
        client: 'dev-acme',
        scopes: new Set(['orders:read', 'payments:write']),
        kind: 'workload',
      })
    }
  })

  it('refuses a wrong secret, a missing one and an unknown client with 401', async () => {
    const wrong = [
      await ask({ scope: 'orders:read' }, { authorization: basic({ ...client, client_secret: 'wrong' }) }),
      await ask({ scope: 'orders:read' }, { authorization: basic({ ...client, client_id: 'unregistered' }) }),
      await ask({ scope: 'orders:read', client_id: client.client_id }),
    ]
    for (const { status, body } of wrong) {
      expect(status).to.equal(401)
      expect(body).to.have.property('error', 'invalid_client')
    }
  })

  it('grants only scopes that the client is registered for, and requires that one is named', async () => {
    const narrow = { ...client, client_id: 'narrow', scope: 'orders:read' }
    await writeFile(clientsFile(dataDir), JSON.stringify({ clients: [narrow] }))
    await running.stop()
    running = await start(dataDir, TEST_AUDIENCE)
    const authorization = basic(narrow)
    for (const scope of ['orders:write', 'orders:read orders:write', '']) {
      const { status, body } = await ask({ scope }, { authorization })
      expect([status, body.error], scope).to.deep.equal([400, 'invalid_scope'])
    }
    const unknown = await ask({ scope: 'orders:read admin' }, { authorization })
    expect(unknown.body).to.have.property('scope', 'orders:read')
    expect(await ask({ scope: 'orders:read' }, { authorization })).to.have.property('status', 200)
  })

  it('takes tenant and audience from the registration instead of the request', async () => {
    const authorization = basic(client)
    const form = { scope: 'orders:read', tenant: 'globex', audience: 'https://other.test', sub: 'root' }
    const { body } = await ask(form, { authorization })
    expect(decodeJwt(body.access_token)).to.include({ tenant: 'acme', aud: TEST_AUDIENCE, sub: 'dev-acme' })
    const elsewhere = await ask({ scope: 'orders:read', resource: 'https://other.test' }, { authorization })
    expect(elsewhere.body).to.have.property('error', 'invalid_target')
    const named = await ask({ scope: 'orders:read', resource: new URL(running.url).origin }, { authorization })
    expect(named.status).to.equal(200)
  })

  it('accepts an assertion signed with the client’s key, once', async () => {
    const key = await generateTestKey()
    const registered = { client_id: 'keyed', tenant: 'globex', scope: 'orders:read', jwks: { keys: [key.publicJwk] } }
    await writeFile(clientsFile(dataDir), JSON.stringify({ clients: [registered] }))
    await running.stop()
    running = await start(dataDir, TEST_AUDIENCE)
    const now = Math.floor(Date.now() / 1000)
    const assertion = { iss: 'keyed', sub: 'keyed', aud: running.url, jti: 'once', iat: now, exp: now + 60 }
    const form = {
      scope: 'orders:read',
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      client_assertion: signToken(key, assertion, { typ: 'JWT' }),
    }
    const { body } = await ask(form)
    expect(await running.verifier.verify(body.access_token)).to.include({ tenant: 'globex', subject: 'keyed' })
    expect(await ask(form)).to.have.property('status', 401)
    const forged = signToken(
      { ...(await generateTestKey()), kid: key.kid },
      { ...assertion, jti: 'two' },
      { typ: 'JWT' },
    )
    expect(await ask({ ...form, client_assertion: forged })).to.have.property('status', 401)
  })

  it('serves only the endpoints of its metadata, and publishes no private key', async () => {
    const keys = await fetch(`${running.url}/jwks`)
    const text = await keys.text()
    expect(keys.headers.get('cache-control')).to.equal('public, max-age=15')
    const published = await running.embedded.jwks()
    expect(JSON.parse(text)).to.deep.equal(published)
    expect(Object.keys(published.keys[0] ?? {})).to.not.include('d')
    for (const path of [
      '/authorize',
      '/me',
      '/session/end',
      '/reg',
      '/token/introspection',
      '/device/auth',
      '/request',
      '/',
    ]) {
      expect(await (await fetch(`${running.url}${path}`)).json(), path).to.deep.equal({ code: 'route_not_found' })
    }
    expect(running.embedded.metadata).to.include({ issuer: running.url, token_endpoint: `${running.url}/token` })
  })

  it('keeps its key and its clients over a restart, readable by the owner only', async () => {
    const { body } = await ask({ scope: 'orders:read' }, { authorization: basic(client) })
    const jwks = await running.embedded.jwks()
    const clients = await readClients(dataDir)
    await running.stop()
    running = await start(dataDir, TEST_AUDIENCE)
    expect(await running.embedded.jwks()).to.deep.equal(jwks)
    expect(await readClients(dataDir)).to.deep.equal(clients)
    expect(decodeProtectedHeader(body.access_token).kid).to.equal(jwks.keys[0]?.kid)
    for (const name of ['signing-key.json', 'clients.json']) {
      expect((await stat(join(dataDir, 'issuer', name))).mode & 0o777, name).to.equal(0o600)
    }
    expect((await stat(join(dataDir, 'issuer'))).mode & 0o777).to.equal(0o700)
  })

  it('prints nothing', async () => {
    const printed: unknown[] = []
    const { warn, info, error, log } = console
    const note = (...words: unknown[]): void => void printed.push(words)
    Object.assign(console, { warn: note, info: note, error: note, log: note })
    try {
      await running.stop()
      running = await start(dataDir, TEST_AUDIENCE)
      await ask({ scope: 'orders:read' }, { authorization: basic(client), origin: 'https://page.test' })
      await ask({ scope: 'orders:read' }, { authorization: 'Basic !!!', accept: 'text/html' })
    } finally {
      Object.assign(console, { warn, info, error, log })
    }
    expect(printed).to.deep.equal([])
  })

  it('publishes a key that another process has rotated to at once, so that no token of that key is refused', async () => {
    const place = { dataDir, issuer: running.url, audience: TEST_AUDIENCE }
    const grant = { tenant: 'globex', subject: 'me', scopes: ['orders:read'], user: false }
    const inProcess = await openTokenVerifier({
      issuer: running.url,
      audience: TEST_AUDIENCE,
      fetchJwks: running.embedded.jwks,
    })
    // The issuer has looked at its files a moment ago.
    await ask({ scope: 'orders:read' }, { authorization: basic(client) })
    await rotateSigningKey(dataDir, { now: false })
    const token = await mintDevToken({ ...place, ...grant })
    for (const verifier of [inProcess, running.verifier])
      expect(await verifier.verify(token)).to.include({ tenant: 'globex', subject: 'me' })
    inProcess.close()
  })

  it('has tokens of workloads and users minted from its files alone', async () => {
    const place = { dataDir, issuer: running.url, audience: TEST_AUDIENCE }
    const grant = { tenant: 'globex', subject: 'me', scopes: ['orders:read', 'orders:write'], user: false }
    const workload = await mintDevToken({ ...place, ...grant })
    expect(await running.verifier.verify(workload)).to.include({ kind: 'workload', tenant: 'globex', client: 'me' })
    const user = await mintDevToken({ ...place, ...grant, user: true })
    expect(await running.verifier.verify(user)).to.include({ kind: 'user', subject: 'me', client: 'ledger-cli' })
    const { iat = 0, exp = 0 } = decodeJwt(user)
    expect(exp - iat).to.equal(900)
  })

  it('names the reason why a token cannot be minted', async () => {
    const place = { dataDir, issuer: running.url, audience: TEST_AUDIENCE }
    const grant = { tenant: 'acme', subject: 'me', scopes: ['orders:read'], user: true }
    const refused: readonly (readonly [Record<string, unknown>, string])[] = [
      [{ tenant: 'Acme' }, 'tenant'],
      [{ subject: '' }, 'subject'],
      [{ subject: 'ledger-cli' }, 'ledger-cli'],
      [{ scopes: [] }, 'scope'],
      [{ scopes: ['orders:reed'] }, 'orders:reed'],
      [{ lifetimeSeconds: 901 }, '900'],
      [{ lifetimeSeconds: 0 }, '900'],
      [{ user: false, lifetimeSeconds: 301 }, '300'],
    ]
    for (const [changes, word] of refused) {
      expect((await rejectionOf(mintDevToken({ ...place, ...grant, ...changes }))).message).to.contain(word)
    }
  })
})
