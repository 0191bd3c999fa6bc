import { mkdtemp } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Provider } from 'oidc-provider'
import { addClient } from '../../src/embedded/issuer/clients.ts'
import { type InteractionDependencies, serveInteraction } from '../../src/embedded/issuer/interactions.ts'
import { createIssuer } from '../../src/embedded/issuer/issuer.ts'
import { type Database, Unavailable } from '../../src/ports.ts'
import { removeFolder } from '../support/folders.ts'

const NO_ANSWER = new Unavailable('database', { effect: 'none', cause: new Error('planted') })
const UNAVAILABLE_PAGE = [503, '1', 'text/html; charset=utf-8']

/** A database whose tables exist and whose every later statement fails with this error. */
const failingWith = (error: Error): Database => {
  const fail = async (): Promise<never> => {
    throw error
  }
  return {
    sql: fail,
    transaction: work => work(async () => []),
    snapshot: fail,
    withLease: fail,
    close: async () => undefined,
  }
}

describe('identity: the issuer when its database fails', () => {
  let dataDir: string
  let server: Server

  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'issuer-'))
    server = createServer()
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    await addClient(dataDir, {
      client_id: 'web',
      tenant: 'acme',
      scope: 'orders:read',
      public: true,
      redirect_uris: ['http://127.0.0.1/callback'],
    })
  })
  afterEach(async () => {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
    await removeFolder(dataDir)
  })

  /** An issuer on the server, whose database fails with the error. */
  const open = async (error: Error) => {
    const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}/oauth`
    const reported: unknown[] = []
    const embedded = await createIssuer({
      issuer,
      audience: 'ledger',
      dataDir,
      database: failingWith(error),
      onError: failure => reported.push(failure),
    })
    server.on('request', (request, response) => {
      request.url = (request.url ?? '').replace(/^\/oauth/, '')
      embedded.handler(request, response, () => response.destroy())
    })
    return { issuer, reported }
  }

  const redeem = async (error: Error) => {
    const { issuer, reported } = await open(error)
    const form = { grant_type: 'authorization_code', client_id: 'web', code: 'x'.repeat(43) }
    const body = new URLSearchParams({
      ...form,
      code_verifier: 'v'.repeat(43),
      redirect_uri: 'http://127.0.0.1/callback',
    })
    const response = await fetch(`${issuer}/token`, { method: 'POST', body })
    const { error: code } = JSON.parse(await response.text()) as { error: string }
    return { status: response.status, code, retryAfter: response.headers.get('retry-after'), reported }
  }

  it('answers 503 with Retry-After while the database does not answer', async () => {
    const { reported, ...answer } = await redeem(NO_ANSWER)
    expect(answer).to.deep.equal({ status: 503, code: 'temporarily_unavailable', retryAfter: '1' })
    expect(reported).to.deep.equal([NO_ANSWER])
  })

  it('answers a browser with a page, 503 and Retry-After, while the database does not answer', async () => {
    const { issuer, reported } = await open(NO_ANSWER)
    const requested = {
      ...{ response_type: 'code', client_id: 'web', redirect_uri: 'http://127.0.0.1/callback', scope: 'orders:read' },
      ...{ code_challenge: 'c'.repeat(43), code_challenge_method: 'S256', resource: new URL(issuer).origin },
    }
    const response = await fetch(`${issuer}/auth?${new URLSearchParams(requested).toString()}`, { redirect: 'manual' })
    const { status, headers } = response
    expect([status, headers.get('retry-after'), headers.get('content-type')]).to.deep.equal(UNAVAILABLE_PAGE)
    expect(await response.text()).to.include('temporarily_unavailable')
    expect(reported).to.deep.equal([NO_ANSWER])
  })

  it('answers a step of a login with a page, 503 and Retry-After, while the database does not answer', async () => {
    const reported: unknown[] = []
    const provider = { interactionDetails: () => Promise.reject(NO_ANSWER) } as Partial<Provider> as Provider
    const dependencies = { provider, onError: error => void reported.push(error) } as InteractionDependencies
    server.on('request', (request, response) => void serveInteraction(request, response, dependencies))
    const { port } = server.address() as AddressInfo
    const response = await fetch(`http://127.0.0.1:${port}/interaction/abc`)
    const { status, headers } = response
    expect([status, headers.get('retry-after'), headers.get('content-type')]).to.deep.equal(UNAVAILABLE_PAGE)
    expect(reported).to.deep.equal([NO_ANSWER])
  })

  it('reveals nothing of any other fault', async () => {
    const { reported, ...answer } = await redeem(new Error('select secret from table'))
    expect(answer).to.deep.equal({ status: 500, code: 'server_error', retryAfter: null })
    expect(reported).to.have.length(1)
  })
})
