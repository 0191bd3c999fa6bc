import type { TokenFault } from './credentialRefusals.ts'

/** The compact serialization of tokens (RFC 7515), parsed without trusting it. */

/** Far above any real access token, and cheap to decode. */
const MAX_TOKEN_CHARACTERS = 8192
const MAX_KID_CHARACTERS = 256

const SEGMENT = /^[A-Za-z0-9_-]+$/
const PRINTABLE = /^[\x20-\x7e]+$/
const ACCESS_TOKEN_TYPES: ReadonlySet<unknown> = new Set(['at+jwt', 'application/at+jwt'])

export const ALGORITHMS = ['ES256', 'RS256'] as const
export type Algorithm = (typeof ALGORITHMS)[number]

/** Keys, certificates, compression, extensions: ignoring them would be safe, but only attackers send them. */
const FORBIDDEN_HEADERS = ['crit', 'jku', 'jwk', 'x5u', 'x5c', 'b64', 'zip', 'enc', 'cty', 'epk', 'p2c'] as const

export type JsonMembers = Readonly<Record<string, unknown>>
export type TokenHeader = { readonly alg: Algorithm; readonly kid: string }
export type CompactToken = { readonly header: TokenHeader; readonly claims: JsonMembers }

/** With `ignoreBOM` a byte order mark is kept and invalidates the JSON, as in other implementations. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Only the canonical encoding: another would be another token with the same signature. */
const decodeSegment = (segment: string): Buffer | undefined => {
  if (!SEGMENT.test(segment)) return undefined
  const bytes = Buffer.from(segment, 'base64url')
  return bytes.toString('base64url') === segment ? bytes : undefined
}

const parseObject = (bytes: Buffer): JsonMembers | undefined => {
  try {
    const value: unknown = JSON.parse(utf8.decode(bytes))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined
  } catch {
    return undefined
  }
}

const isAlgorithm = (value: unknown): value is Algorithm => ALGORITHMS.some(algorithm => algorithm === value)

const readHeader = (header: JsonMembers): TokenHeader | TokenFault => {
  if (FORBIDDEN_HEADERS.some(name => Object.hasOwn(header, name))) return 'header_not_allowed'
  const { typ, alg, kid } = header
  if (!ACCESS_TOKEN_TYPES.has(typ)) return 'typ_not_access_token'
  if (!isAlgorithm(alg)) return 'alg_not_allowed'
  if (typeof kid !== 'string' || kid.length > MAX_KID_CHARACTERS || !PRINTABLE.test(kid)) return 'kid_malformed'
  return { alg, kid }
}

/** Parses a compact JWS without verifying it, or returns the fault of its form. */
export const readCompactToken = (token: string): CompactToken | TokenFault => {
  if (token.length > MAX_TOKEN_CHARACTERS) return 'oversize'
  const segments = token.split('.', 4)
  if (segments.length !== 3) return 'not_three_segments'
  const [head, body, signature] = segments.map(decodeSegment)
  if (!head || !body || !signature) return 'not_canonical_base64url'
  const members = parseObject(head)
  const claims = parseObject(body)
  if (!members || !claims) return 'not_json_object'
  const header = readHeader(members)
  return typeof header === 'string' ? header : { header, claims }
}
