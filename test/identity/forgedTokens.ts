import { createHmac } from 'node:crypto'
import { expect } from 'chai'
import type { TokenFault } from '../../src/identity/credentialRefusals.ts'
import { openTokenVerifier, type TokenVerifier } from '../../src/identity/tokenVerifier.ts'
import {
  base64url,
  claimsFor,
  generateTestKey,
  headerFor,
  type Members,
  signBytes,
  signToken,
  TEST_AUDIENCE,
  type TestKey,
} from '../support/tokens.ts'

export const ISSUER = 'https://issuer.test/oauth'
const NOW_MS = 1_800_000_000_000
/** Unix seconds; the constant clock of these tests. */
export const NOW = NOW_MS / 1000

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** Another encoding of the same bytes: one of the unused bits of the last character is set. */
export const nonCanonical = (segment: string): string => {
  const last = ALPHABET.indexOf(segment.at(-1) ?? '')
  expect(segment.length % 4, 'a segment without unused bits has one encoding').to.be.oneOf([2, 3])
  return segment.slice(0, -1) + ALPHABET[last | 1]
}

export const withSegment = (token: string, index: number, change: (segment: string) => string): string =>
  token
    .split('.')
    .map((segment, at) => (at === index ? change(segment) : segment))
    .join('.')

const generateKeys = async () => {
  const [good, rsa, unpublished, weak, p384, pss, plain] = await Promise.all([
    generateTestKey('ES256'),
    generateTestKey('RS256'),
    generateTestKey('ES256'),
    generateTestKey('RS256', { modulusLength: 1024 }),
    generateTestKey('ES384'),
    generateTestKey('PS256'),
    generateTestKey('RS256'),
  ])
  const mislabelled: TestKey = { ...plain, publicJwk: { ...plain.publicJwk, alg: 'RS512' } }
  // Many issuers omit `alg`; the algorithm then follows from the key.
  const { alg: _, ...unlabelled } = p384.publicJwk
  return { good, rsa, unpublished, weak, p384: { ...p384, publicJwk: unlabelled }, pss, mislabelled }
}

const claims = (changes: Members = {}): Members => claimsFor(ISSUER, changes, NOW_MS)

/** An issuer with usable and unusable keys, a verifier of all of its keys, and functions that create invalid tokens. */
export const openForge = async () => {
  const keys = await generateKeys()
  const { good, rsa, weak, p384, pss, mislabelled } = keys
  const jwksOf = (...published: readonly TestKey[]) => ({ keys: published.map(({ publicJwk }) => publicJwk) })
  let published = jwksOf(good, rsa, p384, pss, mislabelled)
  const verifier: TokenVerifier = await openTokenVerifier({
    issuer: ISSUER,
    audience: TEST_AUDIENCE,
    fetchJwks: async () => published,
    now: () => NOW_MS,
  })
  // The verifier does not open with a key set that has a short key.
  published = jwksOf(good, rsa, weak, p384, pss, mislabelled)
  const unsigned = (alg: string, signature: string, kid = good.kid): string =>
    `${base64url(JSON.stringify(headerFor(good, { alg, kid })))}.${base64url(JSON.stringify(claims()))}.${signature}`
  return {
    keys,
    verifier,
    claims,
    user: (changes: Members = {}): Members => claims({ sub: 'alice', client_id: 'web', exp: NOW + 900, ...changes }),
    good: (changes: Members = {}, header: Members = {}): string => signToken(good, claims(changes), header),
    withHeader: (header: string): string => signBytes(good, header, JSON.stringify(claims())),
    withPayload: (payload: string | Uint8Array): string => signBytes(good, JSON.stringify(headerFor(good)), payload),
    /** The text is inserted into the JSON as the value of `exp`. */
    withExp: (text: string): string => JSON.stringify(claims({ exp: '@' })).replace('"@"', text),
    unsigned,
    hmacWithPublicKey: (): string => {
      const pem = rsa.publicKey.export({ format: 'pem', type: 'spki' })
      const input = unsigned('HS256', '', rsa.kid).slice(0, -1)
      return `${input}.${createHmac('sha256', pem).update(input).digest('base64url')}`
    },
  }
}

export type Forge = Awaited<ReturnType<typeof openForge>>

export type Vector = readonly [name: string, fault: TokenFault, token: (forge: Forge) => string]

const REFUSALS: Readonly<Partial<Record<TokenFault, string>>> = { missing: 'unauthenticated', expired: 'token_expired' }

/** One test for each vector. The fault is compared too, so that each vector is refused for its own reason. */
export const refusesAll = (forge: () => Forge, vectors: readonly Vector[]): void => {
  for (const [name, fault, token] of vectors) {
    it(`refuses a token with ${name}`, async () => {
      const outcome = await forge().verifier.verify(token(forge()))
      expect(outcome).to.deep.equal({ refused: REFUSALS[fault] ?? 'token_invalid', fault })
    })
  }
}
