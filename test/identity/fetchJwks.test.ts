import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { fetchJwksFrom } from '../../src/identity/fetchJwks.ts'

type Answer = { readonly status: number; readonly retryAfter?: string }

/** An issuer that answers the first requests for its keys with these responses, and later ones with the keys. */
const issuerThatAnswers = async (first: readonly Answer[]) => {
  const left = [...first]
  const server = createServer((req, res) => {
    const issuer = `http://localhost:${(server.address() as AddressInfo).port}`
    if (req.url !== '/keys') return res.end(JSON.stringify({ issuer, jwks_uri: `${issuer}/keys` }))
    const { status, retryAfter } = left.shift() ?? { status: 200 }
    res.writeHead(status, retryAfter === undefined ? {} : { 'retry-after': retryAfter })
    return res.end(JSON.stringify({ keys: [{ kid: 'one' }] }))
  })
  await new Promise<void>(listening => server.listen(0, 'localhost', listening))
  return {
    issuer: `http://localhost:${(server.address() as AddressInfo).port}`,
    [Symbol.dispose]: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

describe('reading the keys of an issuer', () => {
  it('retries an overloaded issuer after its Retry-After', async () => {
    using overloaded = await issuerThatAnswers([
      { status: 503, retryAfter: '0' },
      { status: 503, retryAfter: '1' },
      { status: 503, retryAfter: new Date(Date.now() + 1_000).toUTCString() },
    ])
    expect(await fetchJwksFrom(overloaded.issuer)()).to.deep.equal({ keys: [{ kid: 'one' }] })
  })

  for (const [title, answer] of [
    ['a 503 that names no pause', { status: 503 }],
    ['a 503 whose pause is longer than a reading may take', { status: 503, retryAfter: '60' }],
    ['another failure', { status: 500, retryAfter: '0' }],
  ] as const)
    it(`does not retry after ${title}`, async () => {
      using failing = await issuerThatAnswers([answer])
      const failure = await fetchJwksFrom(failing.issuer)().catch((error: unknown) => error)
      expect(failure).to.be.an('error').with.property('message', `The issuer answered ${answer.status}.`)
    })
})
