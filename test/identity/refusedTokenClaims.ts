import { signToken, TEST_AUDIENCE } from '../support/tokens.ts'
import { ISSUER, NOW, type Vector } from './forgedTokens.ts'

/** Tokens with a valid signature and invalid claims. */

const audiences: readonly Vector[] = [
  ['another issuer', 'iss_mismatch', f => f.good({ iss: 'https://evil.test/oauth' })],
  ['the issuer with a slash', 'iss_mismatch', f => f.good({ iss: `${ISSUER}/` })],
  ['the issuer in a list', 'iss_mismatch', f => f.good({ iss: [ISSUER] })],
  ['no issuer', 'iss_mismatch', f => f.good({ iss: undefined })],
  ['no audience', 'aud_mismatch', f => f.good({ aud: undefined })],
  ['another audience', 'aud_mismatch', f => f.good({ aud: 'https://other.test' })],
  ['an empty audience', 'aud_mismatch', f => f.good({ aud: '' })],
  ['an audience that begins alike', 'aud_mismatch', f => f.good({ aud: `${TEST_AUDIENCE}.evil` })],
  ['a list of other audiences', 'aud_mismatch', f => f.good({ aud: ['https://other.test'] })],
  ['an empty list of audiences', 'aud_mismatch', f => f.good({ aud: [] })],
  ['a list of audiences with a number in it', 'aud_mismatch', f => f.good({ aud: [TEST_AUDIENCE, 7] })],
  ['a nested list of audiences', 'aud_mismatch', f => f.good({ aud: [[TEST_AUDIENCE]] })],
  ['17 audiences', 'aud_mismatch', f => f.good({ aud: Array.from({ length: 17 }, () => TEST_AUDIENCE) })],
  ['the audience as an object', 'aud_mismatch', f => f.good({ aud: { 0: TEST_AUDIENCE } })],
]

const subjects: readonly Vector[] = [
  ['no sub', 'sub_malformed', f => f.good({ sub: undefined })],
  ['an empty sub', 'sub_malformed', f => f.good({ sub: '' })],
  ['a sub that is a number', 'sub_malformed', f => f.good({ sub: 1 })],
  ['a sub of 256 characters', 'sub_malformed', f => f.good({ sub: 's'.repeat(256) })],
  ['a sub with a NUL', 'sub_malformed', f => f.good({ sub: 'a\0b' })],
  ['a sub with a line feed at its end', 'sub_malformed', f => f.good({ sub: 'alice\n' })],
  ['no client_id', 'client_id_malformed', f => f.good({ client_id: undefined })],
  ['an empty client_id', 'client_id_malformed', f => f.good({ client_id: '' })],
  ['no jti', 'jti_malformed', f => f.good({ jti: undefined })],
  ['an empty jti', 'jti_malformed', f => f.good({ jti: '' })],
  ['no tenant', 'tenant_malformed', f => f.good({ tenant: undefined })],
  ['an empty tenant', 'tenant_malformed', f => f.good({ tenant: '' })],
  ['a tenant in upper case', 'tenant_malformed', f => f.good({ tenant: 'Acme' })],
  ['a tenant that is a path', 'tenant_malformed', f => f.good({ tenant: '../acme' })],
  ['a tenant that begins with a hyphen', 'tenant_malformed', f => f.good({ tenant: '-acme' })],
  ['a tenant with a line feed at its end', 'tenant_malformed', f => f.good({ tenant: 'acme\n' })],
  ['a tenant of 64 characters', 'tenant_malformed', f => f.good({ tenant: 'a'.repeat(64) })],
  ['the system tenant', 'tenant_malformed', f => f.good({ tenant: 'ledger' })],
  ['several tenants', 'tenant_malformed', f => f.good({ tenant: ['acme', 'globex'] })],
  ['no scope', 'scope_malformed', f => f.good({ scope: undefined })],
  ['an empty scope', 'scope_malformed', f => f.good({ scope: '' })],
  ['a scope that is a list', 'scope_malformed', f => f.good({ scope: ['orders:read'] })],
  ['scopes with two spaces between', 'scope_malformed', f => f.good({ scope: 'orders:read  orders:write' })],
  ['scopes with a comma and a quote', 'scope_malformed', f => f.good({ scope: '"orders:read",' })],
  ['a scope that is too long', 'scope_malformed', f => f.good({ scope: 'x'.repeat(2049) })],
  ['a confirmation key, which binds it to its holder', 'sender_constrained', f => f.good({ cnf: { jkt: 'x' } })],
]

const times: readonly Vector[] = [
  ['no exp', 'exp_malformed', f => f.good({ exp: undefined })],
  ['exp 1e400', 'exp_malformed', f => f.withPayload(f.withExp('1e400'))],
  ['exp as text', 'exp_malformed', f => f.good({ exp: String(NOW + 60) })],
  ['exp with a fraction', 'exp_malformed', f => f.good({ exp: NOW + 60.5 })],
  ['exp null', 'exp_malformed', f => f.good({ exp: null })],
  ['exp zero', 'exp_malformed', f => f.good({ exp: 0 })],
  ['exp negative', 'exp_malformed', f => f.good({ exp: -1 })],
  ['exp true', 'exp_malformed', f => f.good({ exp: true })],
  ['no iat', 'iat_malformed', f => f.good({ iat: undefined })],
  ['iat as text', 'iat_malformed', f => f.good({ iat: String(NOW) })],
  ['iat in the future beyond the leeway', 'iat_in_future', f => f.good({ iat: NOW + 31, exp: NOW + 90 })],
  ['nbf as text', 'nbf_malformed', f => f.good({ nbf: String(NOW) })],
  ['nbf in the future beyond the leeway', 'not_yet_valid', f => f.good({ nbf: NOW + 31 })],
  ['a lifetime of 301 s for a workload', 'lifetime_not_allowed', f => f.good({ exp: NOW + 301 })],
  ['a lifetime of 901 s for a user', 'lifetime_not_allowed', f => signToken(f.keys.good, f.user({ exp: NOW + 901 }))],
  ['exp before iat', 'lifetime_not_allowed', f => f.good({ exp: NOW - 1 })],
  ['exp equal to iat', 'lifetime_not_allowed', f => f.good({ exp: NOW })],
  ['exp in a million years', 'lifetime_not_allowed', f => f.good({ exp: 31_556_952_000_000 })],
  ['exp past beyond the leeway', 'expired', f => f.good({ iat: NOW - 300, exp: NOW - 30 })],
]

export const tokenClaims: readonly Vector[] = [...audiences, ...subjects, ...times]
