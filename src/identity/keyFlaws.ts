import { z } from 'zod'

/** The least that RFC 7518, section 3.3, permits. */
const MIN_RSA_BITS = 2048

const jwkSchema = z.looseObject({
  kty: z.string().optional(),
  alg: z.string().optional(),
  use: z.string().optional(),
  kid: z.string().optional(),
  n: z.string().optional(),
})
const jwksSchema = z.looseObject({ keys: z.array(jwkSchema) })

type Jwk = z.infer<typeof jwkSchema>

/** Of an unsigned number in base64url; a zero byte at its beginning counts for nothing. */
const bitsOf = (text: string): number => {
  const bytes = Buffer.from(text, 'base64url')
  const first = bytes.findIndex(byte => byte !== 0)
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

/** What makes a published set unfit to be believed at all, as the end of a sentence; undefined when nothing does. */
export const flawOf = (jwks: unknown): string | undefined => {
  const parsed = jwksSchema.safeParse(jwks)
  return parsed.data?.keys.map(flawOfKey).find(flaw => flaw !== undefined)
}
