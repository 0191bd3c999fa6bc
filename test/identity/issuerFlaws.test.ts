import { generateKeyPairSync } from 'node:crypto'
import { expect } from 'chai'
import { StartupError } from '../../src/lib/startupError.ts'
import { openTokenVerifier, type TokenVerifierOptions } from '../../src/identity/tokenVerifier.ts'
import { run } from '../scripts/cli.ts'
import { removeFolder } from '../support/folders.ts'
import { temporaryDirectory } from '../support/service.ts'
import { generateTestKey, startTestIssuer, TEST_AUDIENCE } from '../support/tokens.ts'

const ISSUER = 'https://issuer.test/oauth'

const refusal = async (options: Partial<TokenVerifierOptions>): Promise<string> => {
  const good = { issuer: ISSUER, audience: TEST_AUDIENCE, fetchJwks: async () => ({ keys: [] }) }
  try {
    ;(await openTokenVerifier({ ...good, ...options })).close()
    return 'opened'
  } catch (error) {
    expect(error).to.be.instanceOf(StartupError)
    return error instanceof Error ? error.message : ''
  }
}

const rsa = (modulusLength: number) => {
  const jwk = generateKeyPairSync('rsa', { modulusLength }).publicKey.export({ format: 'jwk' })
  return { ...jwk, kid: `rsa-${modulusLength}`, use: 'sig', alg: 'RS256' }
}

describe('identity: the start is refused', () => {
  const publishing = (...keys: readonly object[]): Promise<string> => refusal({ fetchJwks: async () => ({ keys }) })

  it('with an empty issuer or audience', async () => {
    for (const empty of ['', ' ']) {
      expect(await refusal({ issuer: empty })).to.equal('OIDC_ISSUER must not be empty.')
      expect(await refusal({ audience: empty })).to.equal('OIDC_AUDIENCE must not be empty.')
    }
    for (const odd of [
      'issuer',
      'file:///keys',
      'https://me@issuer.test',
      'https://issuer.test?x',
      'https://issuer.test#x',
    ])
      expect(await refusal({ issuer: odd }), odd).to.match(/^OIDC_ISSUER must be an http or https URL/)
  })

  it('with an issuer whose key set is empty or has no usable key', async () => {
    const { publicJwk } = await generateTestKey('ES384')
    for (const keys of [[], [publicJwk], [{ ...publicJwk, use: 'enc' }]])
      expect(await publishing(...keys)).to.equal('OIDC_ISSUER publishes no key that is fit for ES256 or RS256.')
  })

  it('with an issuer that publishes a shared secret, under any name', async () => {
    const { publicJwk } = await generateTestKey()
    const secret = { kty: 'oct', k: Buffer.alloc(32, 1).toString('base64url'), kid: 'shared' }
    for (const odd of [secret, { ...secret, alg: 'HS256', use: 'sig' }, { ...publicJwk, alg: 'HS512', kid: 'shared' }])
      expect(await publishing(publicJwk, odd)).to.equal(
        'OIDC_ISSUER publishes the key "shared", which is for HMAC: whoever can check a token with it can also make one.',
      )
  })

  it('with an issuer that publishes a short RSA key, beside good ones', async () => {
    const { publicJwk } = await generateTestKey()
    for (const bits of [1024, 2040])
      expect(await publishing(publicJwk, rsa(bits))).to.equal(
        `OIDC_ISSUER publishes the key "rsa-${bits}", an RSA key of ${bits} bits: 2048 are the least.`,
      )
    for (const bits of [2048, 3072]) expect(await publishing(rsa(bits))).to.equal('opened')
  })

  it('but not for an unreachable issuer: then tokens are refused until it answers', async () => {
    expect(await refusal({ fetchJwks: () => Promise.reject(new Error('connection refused')) })).to.equal('opened')
  })

  it('with one sentence that names the setting', async () => {
    const issuer = await startTestIssuer(await generateTestKey('RS256', { modulusLength: 1024 }))
    const dataDir = await temporaryDirectory()
    const env = { OIDC_ISSUER: issuer.issuer, OIDC_AUDIENCE: TEST_AUDIENCE, LEDGER_DATA_DIR: dataDir }
    try {
      const { code, stderr } = await run('../src/main.ts', [], { ...env, PORT: '0' })
      expect(code).to.equal(1)
      expect(stderr).to.match(
        /^OIDC_ISSUER publishes the key "[\w-]+", an RSA key of 1024 bits: 2048 are the least\.\n$/,
      )
    } finally {
      await issuer.close()
      await removeFolder(dataDir)
    }
  })
})
