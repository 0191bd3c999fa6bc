import { expect } from 'chai'
import { signToken, TEST_AUDIENCE } from '../support/tokens.ts'
import { type Forge, NOW, openForge, refusesAll } from './forgedTokens.ts'
import { tokenClaims } from './refusedTokenClaims.ts'

const accepted: readonly (readonly [name: string, token: (forge: Forge) => string])[] = [
  ['a list with its audience', f => f.good({ aud: ['https://other.test', TEST_AUDIENCE] })],
  ['typ with its prefix application/', f => f.good({}, { typ: 'application/at+jwt' })],
  ['exactly 300 s for a workload', f => f.good({ exp: NOW + 300 })],
  ['exactly 900 s for a user', f => signToken(f.keys.good, f.user({ exp: NOW + 900 }))],
  ['iat in the future within the leeway', f => f.good({ iat: NOW + 30 })],
  ['nbf in the future within the leeway', f => f.good({ nbf: NOW + 30 })],
  ['nbf zero', f => f.good({ nbf: 0 })],
  ['exp past within the leeway', f => f.good({ iat: NOW - 300, exp: NOW - 29 })],
  ['exp written as JSON', f => f.withPayload(f.withExp(String(NOW + 60)))],
  ['names of the maximal length', f => f.good({ jti: 'j'.repeat(255), tenant: 'a'.repeat(63) })],
  ['unknown claims', f => f.good({ email: 'a@b.test', realm_access: { roles: ['admin'] } })],
  ['unknown header members', f => f.good({}, { x5t: 'abc' })],
]

describe('identity: the token verifier, for the claims of a token,', () => {
  let forge: Forge

  before(async () => {
    forge = await openForge()
  })

  after(() => forge.verifier.close())

  refusesAll(() => forge, tokenClaims)

  for (const [name, token] of accepted) {
    it(`accepts a token with ${name}`, async () => {
      expect(await forge.verifier.verify(token(forge))).to.not.have.property('refused')
    })
  }

  it('identifies a client whose id is the subject as a workload', async () => {
    expect(await forge.verifier.verify(forge.good())).to.deep.equal({
      tenant: 'acme',
      subject: 'client-1',
      client: 'client-1',
      scopes: new Set(['orders:read', 'orders:write']),
      kind: 'workload',
    })
  })

  it('identifies any other subject as a user, and drops unknown scopes', async () => {
    const token = signToken(forge.keys.good, forge.user({ scope: 'openid orders:read admin', role: 'owner' }))
    expect(await forge.verifier.verify(token)).to.deep.equal({
      tenant: 'acme',
      subject: 'alice',
      client: 'web',
      scopes: new Set(['orders:read']),
      kind: 'user',
    })
  })
})
