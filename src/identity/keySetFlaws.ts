import { z } from 'zod'

/** Flaws of published key sets that make an issuer untrustworthy. */

/** The minimum of RFC 7518, section 3.3. */
export const MIN_RSA_BITS = 2048

const jwkSchema = z.looseObject({
  kty: z.string().optional(),
  alg: z.string().optional(),
  use: z.string().optional(),
  kid: z.string().optional(),
  n: z.string().optional(),
})
const jwksSchema = z.looseObject({ keys: z.array(jwkSchema) })

type Jwk = z.infer<typeof jwkSchema>

/** The bit length of an unsigned number in base64url; leading zeros do not count. */
const bitsOf = (text: string): number => {
  const bytes = Buffer.from(text, 'base64url')
  const first = bytes.findIndex(byte => byte !== 0)
  // clz32 counts the leading zeros of 32 bits, 24 more than a byte has.
  return first === -1 ? 0 : (bytes.length - first) * 8 - Math.clz32(bytes[first] ?? 0) + 24
}

const flawOfKey = ({ kty, alg = '', use, kid, n = '' }: Jwk): string | undefined => {
  const name = kid === undefined ? 'a key without kid' : `the key ${JSON.stringify(kid)}`
  if (kty === 'oct' || alg.startsWith('HS'))
    return `${name}, which is for HMAC: whoever can check a token with it can also make one.`
  if (kty === 'RSA' && use !== 'enc' && bitsOf(n) < MIN_RSA_BITS)
    return `${name}, an RSA key of ${bitsOf(n)} bits: ${MIN_RSA_BITS} are the least.`
  return undefined
}

/** The first flaw of a published key set, worded to follow "It publishes"; undefined without one. */
export const flawOf = (jwks: unknown): string | undefined => {
  const parsed = jwksSchema.safeParse(jwks)
  return parsed.data?.keys.map(flawOfKey).find(flaw => flaw !== undefined)
}
