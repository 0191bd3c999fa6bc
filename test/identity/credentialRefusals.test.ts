import { expect } from 'chai'
import { headerFor, signToken } from '../support/tokens.ts'
import { type Forge, NOW, openForge, refusesAll, withSegment } from './forgedTokens.ts'
import { tokenForms } from './malformedTokens.ts'

describe('identity: the token verifier, for the form, header and signature of a token,', () => {
  let forge: Forge

  before(async () => {
    forge = await openForge()
  })

  after(() => forge.verifier.close())

  refusesAll(() => forge, tokenForms)

  it('refuses a missing token', async () => {
    expect(await forge.verifier.verify(undefined)).to.deep.equal({ refused: 'unauthenticated', fault: 'missing' })
  })

  it('does not reveal the expiry of a token with a wrong signature', async () => {
    const { keys, claims, verifier } = forge
    const forged = signToken({ ...keys.unpublished, kid: keys.good.kid }, claims({ iat: NOW - 300, exp: NOW - 30 }))
    expect(await verifier.verify(forged)).to.deep.equal({ refused: 'token_invalid', fault: 'signature_invalid' })
  })

  it('refuses a forged token also when a valid one with the same claims is cached', async () => {
    const { good, verifier } = forge
    const token = good()
    const forged = withSegment(token, 2, () => good().split('.')[2] ?? '')
    expect(await verifier.verify(token)).to.have.property('subject', 'client-1')
    expect(await verifier.verify(forged)).to.have.property('refused', 'token_invalid')
  })

  it('accepts these tokens without their faults', async () => {
    const { good, keys, claims, withHeader, withPayload, verifier } = forge
    for (const token of [
      good(),
      signToken(keys.rsa, claims()),
      withHeader(JSON.stringify(headerFor(keys.good))),
      withPayload(JSON.stringify(claims())),
      good({ pad: 'x'.repeat(4000) }),
    ]) {
      expect(await verifier.verify(token)).to.have.property('kind', 'workload')
    }
  })
})
