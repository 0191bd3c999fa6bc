import { base64url, headerFor, signToken } from '../support/tokens.ts'
import { nonCanonical, type Vector, withSegment } from './forgedTokens.ts'

/** Tokens with an invalid form, header or signature. */

const forms: readonly Vector[] = [
  ['no character', 'missing', () => ''],
  ['one segment', 'not_three_segments', () => 'letmein'],
  ['two segments', 'not_three_segments', f => f.good().split('.').slice(0, 2).join('.')],
  ['four segments', 'not_three_segments', f => `${f.good()}.AAAA`],
  ['five segments, like an encrypted one', 'not_three_segments', f => `${f.good()}.AAAA.AAAA`],
  ['an empty header', 'not_canonical_base64url', f => withSegment(f.good(), 0, () => '')],
  ['an empty payload', 'not_canonical_base64url', f => withSegment(f.good(), 1, () => '')],
  ['an empty signature', 'not_canonical_base64url', f => withSegment(f.good(), 2, () => '')],
  ['padding behind the header', 'not_canonical_base64url', f => withSegment(f.good(), 0, part => `${part}=`)],
  ['padding behind the signature', 'not_canonical_base64url', f => `${f.good()}==`],
  ['a non-canonical end of the signature', 'not_canonical_base64url', f => withSegment(f.good(), 2, nonCanonical)],
  [
    'a character of plain base64',
    'not_canonical_base64url',
    f => withSegment(f.good(), 2, part => `${part.slice(1)}+`),
  ],
  ['a space before it', 'not_canonical_base64url', f => ` ${f.good()}`],
  ['a line feed behind it', 'not_canonical_base64url', f => `${f.good()}\n`],
  ['a NUL within it', 'not_canonical_base64url', f => withSegment(f.good(), 1, part => `${part}\0`)],
  ['a segment of an impossible length', 'not_canonical_base64url', f => withSegment(f.good(), 1, () => 'AAAAA')],
  ['more than 8 KiB', 'oversize', f => f.good({ pad: 'x'.repeat(8192) })],
  ['a header that is not JSON', 'not_json_object', f => f.withHeader('{alg:ES256}')],
  ['a header that is an array', 'not_json_object', f => f.withHeader('[]')],
  ['a header that is null', 'not_json_object', f => f.withHeader('null')],
  ['a payload that is text', 'not_json_object', f => f.withPayload('"sub"')],
  ['a payload that is an array', 'not_json_object', f => f.withPayload('[]')],
  ['a payload with a byte order mark', 'not_json_object', f => f.withPayload(`\uFEFF${JSON.stringify(f.claims())}`)],
  ['a payload that is not UTF-8', 'not_json_object', f => f.withPayload(Buffer.from('{"sub":"\xff"}', 'latin1'))],
  ['another token as its payload', 'not_json_object', f => f.withPayload(f.good())],
]

const headers: readonly Vector[] = [
  ['alg none without signature', 'not_canonical_base64url', f => f.unsigned('none', '')],
  ['alg none with a signature', 'alg_not_allowed', f => f.unsigned('none', 'AAAA')],
  ['alg None', 'alg_not_allowed', f => f.unsigned('None', 'AAAA')],
  ['alg HS256 keyed with the public key', 'alg_not_allowed', f => f.hmacWithPublicKey()],
  ['alg RS384', 'alg_not_allowed', f => signToken({ ...f.keys.rsa, alg: 'RS384' }, f.claims())],
  ['alg PS256', 'alg_not_allowed', f => signToken(f.keys.pss, f.claims())],
  ['alg ES384', 'alg_not_allowed', f => signToken(f.keys.p384, f.claims())],
  ['alg in lower case', 'alg_not_allowed', f => f.good({}, { alg: 'es256' })],
  ['alg as a list', 'alg_not_allowed', f => f.good({}, { alg: ['ES256'] })],
  ['no alg', 'alg_not_allowed', f => f.good({}, { alg: undefined })],
  ['typ JWT', 'typ_not_access_token', f => f.good({}, { typ: 'JWT' })],
  ['typ of an ID token by another name', 'typ_not_access_token', f => f.good({}, { typ: 'id+jwt' })],
  ['typ of a logout token', 'typ_not_access_token', f => f.good({}, { typ: 'logout+jwt' })],
  ['no typ', 'typ_not_access_token', f => f.good({}, { typ: undefined })],
  ['crit with an unknown extension', 'header_not_allowed', f => f.good({}, { crit: ['x'], x: 1 })],
  ['crit that is empty', 'header_not_allowed', f => f.good({}, { crit: [] })],
  ['jku', 'header_not_allowed', f => f.good({}, { jku: 'https://evil.test/jwks' })],
  ['x5u', 'header_not_allowed', f => f.good({}, { x5u: 'https://evil.test/cert' })],
  ['x5c', 'header_not_allowed', f => f.good({}, { x5c: ['MII'] })],
  [
    'the public key in its header',
    'header_not_allowed',
    f => signToken(f.keys.unpublished, f.claims(), { jwk: f.keys.unpublished.publicJwk }),
  ],
  ['b64 false', 'header_not_allowed', f => f.good({}, { b64: false })],
  ['zip', 'header_not_allowed', f => f.good({}, { zip: 'DEF' })],
  ['cty for a nested token', 'header_not_allowed', f => f.good({}, { cty: 'JWT' })],
  ['enc, as if it were encrypted', 'header_not_allowed', f => f.good({}, { enc: 'A256GCM' })],
  ['no kid', 'kid_malformed', f => f.good({}, { kid: undefined })],
  ['an empty kid', 'kid_malformed', f => f.good({}, { kid: '' })],
  ['a kid that is a number', 'kid_malformed', f => f.good({}, { kid: 1 })],
  ['a kid with a line feed', 'kid_malformed', f => f.good({}, { kid: 'a\nb' })],
  ['a kid that is too long', 'kid_malformed', f => f.good({}, { kid: 'k'.repeat(257) })],
  ['a kid that is a path', 'key_unknown', f => f.good({}, { kid: '../../etc/passwd' })],
  ['a kid that is SQL', 'key_unknown', f => f.good({}, { kid: "' union select 'key" })],
  ['a kid that is a member of Object.prototype', 'key_unknown', f => f.good({}, { kid: '__proto__' })],
]

const signatures: readonly Vector[] = [
  [
    'another key under a known kid',
    'signature_invalid',
    f => signToken({ ...f.keys.unpublished, kid: f.keys.good.kid }, f.claims()),
  ],
  ['a key that the issuer does not have', 'key_unknown', f => signToken(f.keys.unpublished, f.claims())],
  ['ES256 with the kid of an RSA key', 'key_unknown', f => f.good({}, { kid: f.keys.rsa.kid })],
  [
    'RS256 with the kid of an EC key',
    'key_unknown',
    f => signToken({ ...f.keys.rsa, kid: f.keys.good.kid }, f.claims()),
  ],
  ['an RSA key of 1024 bits', 'key_unknown', f => signToken(f.keys.weak, f.claims())],
  ['a key published for RS512', 'key_unknown', f => signToken(f.keys.mislabelled, f.claims())],
  ['a key published for PS256', 'key_unknown', f => signToken({ ...f.keys.pss, alg: 'RS256' }, f.claims())],
  ['a P-384 key and alg ES256', 'key_unknown', f => signToken(f.keys.p384, f.claims(), { alg: 'ES256' })],
  [
    'a changed payload',
    'signature_invalid',
    f => withSegment(f.good(), 1, () => base64url(JSON.stringify(f.claims({ tenant: 'globex' })))),
  ],
  [
    'a changed header',
    'signature_invalid',
    f => withSegment(f.good(), 0, () => base64url(JSON.stringify(headerFor(f.keys.good, { x: 1 })))),
  ],
  ['a truncated signature', 'signature_invalid', f => withSegment(f.good(), 2, part => part.slice(0, 84))],
  ['a signature of zeros', 'signature_invalid', f => withSegment(f.good(), 2, () => base64url(Buffer.alloc(64)))],
  [
    'a signature in DER',
    'signature_invalid',
    f => withSegment(f.good(), 2, () => base64url(Buffer.from('3006020101020101', 'hex'))),
  ],
  [
    'the signature of another token',
    'signature_invalid',
    f => withSegment(f.good(), 2, () => f.good().split('.')[2] ?? ''),
  ],
]

export const tokenForms: readonly Vector[] = [...forms, ...headers, ...signatures]
