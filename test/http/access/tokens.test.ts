import { expect } from 'chai'
import { createAuthentication } from '../../../src/http/index.ts'
import { type Forge, openForge } from '../../identity/forgedTokens.ts'
import { tokenClaims } from '../../identity/refusedTokenClaims.ts'
import { tokenForms } from '../../identity/malformedTokens.ts'
import type { Answer } from '../../support/client.ts'
import { sharedService } from '../../support/service.ts'
import { startVariant, type Variant } from '../../support/serviceVariants.ts'
import { send } from '../../support/rawHttp.ts'

const CODES: Readonly<Record<string, string>> = { expired: 'token_expired' }

/** Tokens that a header cannot carry, or that are changed on the way. */
const NOT_CARRIED = ['no character', 'a space before it', 'a line feed behind it', 'a NUL within it']
const vectors = [...tokenForms, ...tokenClaims].filter(([name]) => !NOT_CARRIED.includes(name))

describe('authentication over HTTP', () => {
  let forge: Forge
  let variant: Variant
  const ask = (token: string): Promise<Answer> =>
    send(variant.api, { method: 'GET', path: '/orders', headers: [['Authorization', `Bearer ${token}`]] })

  before(async () => {
    forge = await openForge()
    const authenticate = createAuthentication({ tokens: forge.verifier })
    variant = await startVariant(await sharedService(), { authenticate })
  })
  after(() => variant.close())

  for (const [name, fault, token] of vectors)
    it(`refuses a token with ${name}`, async () => {
      const answer = await ask(token(forge))
      expect([answer.status, answer.body.code]).to.deep.equal([401, CODES[fault] ?? 'token_invalid'])
      expect(answer.headers.get('www-authenticate')).to.match(/^Bearer/)
      // The reason is in the log only.
      if (!(fault in CODES)) expect(answer.text).to.not.include(fault)
    })

  it('accepts a valid token', async () => {
    expect((await ask(forge.good({ scope: 'orders:read' }))).status).to.equal(200)
  })
})
