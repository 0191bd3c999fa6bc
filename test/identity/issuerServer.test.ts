import { mkdtemp } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import express from 'express'
import { findFreePort } from '../../src/embedded/freePorts.ts'
import { addClient } from '../../src/embedded/issuer/clients.ts'
import { createIssuer } from '../../src/embedded/issuer/issuer.ts'
import { forwardTo, type IssuerServer, startIssuerServer } from '../../src/embedded/issuer/issuerServer.ts'
import { addUser } from '../../src/embedded/issuer/users.ts'
import { decide, logIn, newPkce, openBrowser } from './browser.ts'
import { CALLBACK } from './oauthFlows.ts'
import { removeFolder } from '../support/folders.ts'

/** Two API processes on one port, which answer in turn, and the process of the issuer behind them. */

describe('identity: the issuer of several processes', () => {
  const peers = ['192.0.2.1', '192.0.2.2']
  const failures: unknown[] = []
  const revoked: string[] = []
  let dataDir: string
  let primary: IssuerServer
  let server: Server
  let url: string
  let password: string

  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'issuer-'))
    const redirect_uris = [CALLBACK]
    await addClient(dataDir, { client_id: 'web', tenant: 'acme', scope: 'orders:read', public: true, redirect_uris })
    password = await addUser(dataDir, { username: 'ann', tenant: 'acme', scope: 'orders:read' })
    const port = await findFreePort('127.0.0.1')
    url = `http://127.0.0.1:${port}/oauth`
    const known = { issuer: url, audience: 'ledger', dataDir }
    primary = await startIssuerServer({ ...known, revoke: async name => void revoked.push(name) })
    const openApi = async (address: string) => {
      const addressOf = (): string => address
      const forward = forwardTo({ port: primary.port, issuer: url, addressOf })
      return createIssuer({ ...known, forward, addressOf, onError: error => failures.push(error) })
    }
    const apis = await Promise.all(peers.map(openApi))
    let turn = 0
    const app = express()
    app.use('/oauth', (req, res, next) => {
      turn += 1
      apis[turn % apis.length]?.handler(req, res, next)
    })
    app.use((_req: express.Request, res: express.Response) => void res.status(404).send('none'))
    app.use((error: Error & { allow?: string }, _req: unknown, res: express.Response, _next: () => void) =>
      res.status(error.allow ? 405 : 500).send(error.allow ?? 'failed'),
    )
    server = createServer(app).listen(port, '127.0.0.1')
    failures.length = 0
    revoked.length = 0
  })
  afterEach(async () => {
    await primary.close()
    server.closeAllConnections()
    server.close()
    await removeFolder(dataDir)
  })

  const authorizeUrl = (challenge: string): string => {
    const requested = { response_type: 'code', client_id: 'web', redirect_uri: CALLBACK, scope: 'orders:read' }
    const query = new URLSearchParams({ ...requested, code_challenge: challenge, code_challenge_method: 'S256' })
    return `${url}/auth?${query.toString()}`
  }

  const ask = async (path: string, fields: Record<string, string>) => {
    const response = await fetch(`${url}${path}`, { method: 'POST', body: new URLSearchParams(fields) })
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: text === '' ? {} : JSON.parse(text) }
  }

  it('logs a user in, although each request is received by another process', async () => {
    const browser = openBrowser(new URL(url).origin)
    const { verifier, challenge } = newPkce()
    const consent = await logIn(browser, await browser.get(authorizeUrl(challenge)), 'ann', password)
    const { left } = await decide(browser, consent, 'allow')
    const code = left?.searchParams.get('code') ?? ''
    const redemption = { grant_type: 'authorization_code', client_id: 'web', redirect_uri: CALLBACK }
    const { status, headers, body } = await ask('/token', { ...redemption, code, code_verifier: verifier })
    expect([status, headers.get('cache-control')]).to.deep.equal([200, 'no-store'])
    expect((await ask('/revoke', { client_id: 'web', token: body.access_token })).status).to.equal(200)
    expect(revoked).to.have.length(1)
    const again = await ask('/token', { ...redemption, code, code_verifier: verifier })
    expect([again.status, again.body.error]).to.deep.equal([400, 'invalid_grant'])
    expect(failures).to.deep.equal([])
  })

  it('counts the failed logins of all processes together, for each user', async () => {
    const browser = openBrowser(new URL(url).origin)
    const page = await browser.get(authorizeUrl(newPkce().challenge))
    const statuses: number[] = []
    for (let attempt = 0; attempt <= 10; attempt++)
      statuses.push((await logIn(browser, page, 'ann', 'wrong wrong wrong')).status)
    expect(statuses).to.deep.equal([...Array.from({ length: 10 }, () => 403), 429])
  })

  it('has its keys in each process, and refuses other paths and methods there', async () => {
    await primary.close()
    expect((await fetch(`${url}/jwks`)).status).to.equal(200)
    expect((await fetch(`${url}/token`)).status).to.equal(405)
    for (const path of ['/none', '/session/end', '/interaction/abc/login'])
      expect((await fetch(`${url}${path}`)).status, path).to.equal(404)
  })

  it('reports that the process of the issuer does not answer', async () => {
    await primary.close()
    const response = await fetch(`${url}/token`, { method: 'POST', body: new URLSearchParams({ client_id: 'web' }) })
    expect(response.status).to.equal(500)
    expect(failures).to.have.length(1)
  })
})
