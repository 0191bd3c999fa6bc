import { mkdtemp } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Provider } from 'oidc-provider'
import { addClient, newSecret } from '../../src/embedded/issuer/clients.ts'
import { type InteractionDependencies, serveInteraction } from '../../src/embedded/issuer/interactions.ts'
import { createIssuer } from '../../src/embedded/issuer/issuer.ts'
import { Unavailable } from '../../src/ports.ts'
import { removeFolder } from '../support/folders.ts'

const NO_ANSWER = new Unavailable('database', { effect: 'none', cause: new Error('planted') })

describe('identity: the issuer when the list of revocations fails', () => {
  const workload = { client_id: 'workload', client_secret: newSecret() }
  let dataDir: string
  let server: Server

  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'issuer-'))
    server = createServer()
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    await addClient(dataDir, { ...workload, tenant: 'acme', scope: 'orders:read' })
  })
  afterEach(async () => {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
    await removeFolder(dataDir)
  })

  /** An issuer on the server, which cannot revoke. */
  const open = async (error: Error) => {
    const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}/oauth`
    const reported: unknown[] = []
    const embedded = await createIssuer({
      issuer,
      audience: 'ledger',
      dataDir,
      revoke: async () => {
        throw error
      },
      onError: failure => reported.push(failure),
    })
    server.on('request', (request, response) => {
      request.url = (request.url ?? '').replace(/^\/oauth/, '')
      embedded.handler(request, response, () => response.destroy())
    })
    return { issuer, reported }
  }

  const revoke = async (error: Error) => {
    const { issuer, reported } = await open(error)
    const ask = async (path: string, fields: Record<string, string>) => {
      const body = new URLSearchParams({ ...workload, ...fields })
      const response = await fetch(`${issuer}/${path}`, { method: 'POST', body })
      return { response, answer: JSON.parse(await response.text()) as Record<string, string> }
    }
    const { access_token = '' } = (await ask('token', { grant_type: 'client_credentials', scope: 'orders:read' }))
      .answer
    const { response, answer } = await ask('revoke', { token: access_token })
    return { status: response.status, code: answer['error'], retryAfter: response.headers.get('retry-after'), reported }
  }

  it('answers 503 with Retry-After while the database does not answer', async () => {
    const { reported, ...answer } = await revoke(NO_ANSWER)
    expect(answer).to.deep.equal({ status: 503, code: 'temporarily_unavailable', retryAfter: '1' })
    expect(reported).to.deep.equal([NO_ANSWER])
  })

  it('answers a failing step of a login with a page', async () => {
    const reported: unknown[] = []
    const provider = { interactionDetails: () => Promise.reject(NO_ANSWER) } as Partial<Provider> as Provider
    const dependencies = { provider, onError: error => void reported.push(error) } as InteractionDependencies
    const step = { ...dependencies, uid: 'abc' }
    server.on('request', (request, response) => void serveInteraction(request, response, step))
    const { port } = server.address() as AddressInfo
    const { status, headers } = await fetch(`http://127.0.0.1:${port}/interaction/abc`)
    expect([status, headers.get('content-type')]).to.deep.equal([500, 'text/html; charset=utf-8'])
    expect(reported).to.deep.equal([NO_ANSWER])
  })

  it('reveals nothing of any other fault', async () => {
    const { reported, ...answer } = await revoke(new Error('select secret from table'))
    expect(answer).to.deep.equal({ status: 500, code: 'server_error', retryAfter: null })
    expect(reported).to.have.length(1)
  })
})
