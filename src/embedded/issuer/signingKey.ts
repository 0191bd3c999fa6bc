import { join } from 'node:path'
import { calculateJwkThumbprint, exportJWK, generateKeyPair } from 'jose'
import { z } from 'zod'
import { StartupError } from '../../startupError.ts'
import { RETIRING_SECONDS } from './lifetimes.ts'
import { type LivingFile, openLivingFile } from './watchedFile.ts'
import { editPrivate, issuerFolder, readOrCreatePrivate } from './privateFile.ts'

const FILE_NAME = 'signing-key.json'

const publicKey = {
  kty: z.literal('EC'),
  crv: z.literal('P-256'),
  x: z.base64url(),
  y: z.base64url(),
  alg: z.literal('ES256'),
  use: z.literal('sig'),
  kid: z.string().min(1),
}
const publicKeySchema = z.strictObject(publicKey)
const signingKeySchema = z.strictObject({ ...publicKey, d: z.base64url() })

/** A key alone is a ring with nothing retiring. */
const keyRingSchema = z.union([
  z.strictObject({
    signing: signingKeySchema,
    retiring: z.array(z.strictObject({ key: publicKeySchema, until: z.int() })),
  }),
  signingKeySchema.transform(signing => ({ signing, retiring: [] })),
])

/** A private JWK. `kid` is its RFC 7638 thumbprint, so a new key can never take the name of an old one. */
export type SigningKey = z.infer<typeof signingKeySchema>

/** The part of the key that everybody may have. */
export type PublicKey = z.infer<typeof publicKeySchema>

/**
 * One key signs. Those before it are kept by their public half alone, until the Unix second after which no token of
 * theirs can be alive: they check, and can never sign again.
 */
export type KeyRing = z.infer<typeof keyRingSchema>

const generateKey = async (): Promise<SigningKey> => {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  const jwk = await exportJWK(privateKey)
  const kid = await calculateJwkThumbprint(jwk)
  return signingKeySchema.parse({ ...jwk, alg: 'ES256', use: 'sig', kid })
}

const textOf = (ring: KeyRing): string => `${JSON.stringify(ring, undefined, 2)}\n`

const generate = async (): Promise<string> => textOf({ signing: await generateKey(), retiring: [] })

const parse = (text: string): KeyRing => {
  try {
    return keyRingSchema.parse(JSON.parse(text))
  } catch {
    // The cause is left out on purpose: a parser's message may quote the key.
    throw new StartupError(
      `The data directory's issuer/${FILE_NAME} is not an ES256 key; remove it and a new one is made.`,
    )
  }
}

const loadKeyRing = async (dataDir: string): Promise<KeyRing> =>
  parse(await readOrCreatePrivate(issuerFolder(dataDir), FILE_NAME, generate))

/** The keys of the dev issuer, made at first use, as they are now. Throws a StartupError when they cannot be had. */
export const openKeyRing = (dataDir: string, onError: (error: unknown) => void): Promise<LivingFile<KeyRing>> =>
  openLivingFile(join(issuerFolder(dataDir), FILE_NAME), () => loadKeyRing(dataDir), onError)

/** The key that signs at present. Throws a StartupError when it cannot be had. */
export const loadSigningKey = async (dataDir: string): Promise<SigningKey> => (await loadKeyRing(dataDir)).signing

export const publicPart = ({ d: _, ...open }: SigningKey): PublicKey => open

const nowSeconds = (): number => Math.floor(Date.now() / 1000)

const retiringAt = ({ retiring }: KeyRing, seconds: number): KeyRing['retiring'] =>
  retiring.filter(({ until }) => until > seconds)

/** What is published: the key that signs, and those whose tokens may still be alive. */
export const publishedKeys = (ring: KeyRing): readonly PublicKey[] => [
  publicPart(ring.signing),
  ...retiringAt(ring, nowSeconds()).map(({ key }) => key),
]

/**
 * Puts a new key in the place of the one that signs, which goes on checking until its tokens have expired; with `now` it
 * is not published any more, and tokens of its are refused within a minute: for a key that others may have. Throws a
 * StartupError when the keys cannot be read or written.
 */
export const rotateSigningKey = async (dataDir: string, { now }: { readonly now: boolean }): Promise<KeyRing> => {
  const signing = await generateKey()
  let rotated: KeyRing = { signing, retiring: [] }
  await editPrivate(issuerFolder(dataDir), FILE_NAME, generate, async content => {
    const ring = parse(content)
    const last = { key: publicPart(ring.signing), until: nowSeconds() + RETIRING_SECONDS }
    rotated = { signing, retiring: now ? [] : [last, ...retiringAt(ring, nowSeconds())] }
    return textOf(rotated)
  })
  return rotated
}
