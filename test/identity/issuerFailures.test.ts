import { mkdtemp } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { addClient } from '../../src/embedded/issuer/clients.ts'
import { createIssuer } from '../../src/embedded/issuer/issuer.ts'
import { type Database, Unavailable } from '../../src/ports.ts'
import { removeFolder } from '../support/folders.ts'

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

  const redeem = async (error: Error) => {
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
    const planted = new Unavailable('database', { effect: 'none', cause: new Error('planted') })
    const { reported, ...answer } = await redeem(planted)
    expect(answer).to.deep.equal({ status: 503, code: 'temporarily_unavailable', retryAfter: '1' })
    expect(reported).to.deep.equal([planted])
  })

  it('reveals nothing of any other fault', async () => {
    const { reported, ...answer } = await redeem(new Error('select secret from table'))
    expect(answer).to.deep.equal({ status: 500, code: 'server_error', retryAfter: null })
    expect(reported).to.have.length(1)
  })
})
