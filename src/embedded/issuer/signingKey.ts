import { calculateJwkThumbprint, exportJWK, generateKeyPair } from 'jose'
import { z } from 'zod'
import { Refusal } from '../refusal.ts'
import { issuerFolder, readOrCreatePrivate } from './privateFile.ts'

const FILE_NAME = 'signing-key.json'

const signingKeySchema = z.strictObject({
  kty: z.literal('EC'),
  crv: z.literal('P-256'),
  x: z.base64url(),
  y: z.base64url(),
  d: z.base64url(),
  alg: z.literal('ES256'),
  use: z.literal('sig'),
  kid: z.string().min(1),
})

/** A private JWK. `kid` is its RFC 7638 thumbprint, so a new key can never take the name of an old one. */
export type SigningKey = z.infer<typeof signingKeySchema>

/** The part of the key that everybody may have. */
export type PublicKey = Omit<SigningKey, 'd'>

const generate = async (): Promise<string> => {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  const jwk = await exportJWK(privateKey)
  const kid = await calculateJwkThumbprint(jwk)
  return `${JSON.stringify({ ...jwk, alg: 'ES256', use: 'sig', kid }, undefined, 2)}\n`
}

const parse = (text: string): SigningKey => {
  try {
    return signingKeySchema.parse(JSON.parse(text))
  } catch {
    // The cause is left out on purpose: a parser's message may quote the key.
    throw new Refusal(`The data directory's issuer/${FILE_NAME} is not an ES256 key; remove it and a new one is made.`)
  }
}

/** The key of the dev issuer, made at first use and the same ever after. Throws a Refusal when it cannot be had. */
export const loadSigningKey = async (dataDir: string): Promise<SigningKey> =>
  parse(await readOrCreatePrivate(issuerFolder(dataDir), FILE_NAME, generate))

export const publicPart = ({ kty, crv, x, y, alg, use, kid }: SigningKey): PublicKey => ({
  kty,
  crv,
  x,
  y,
  alg,
  use,
  kid,
})
