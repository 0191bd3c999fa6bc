import { join } from 'node:path'
import { calculateJwkThumbprint, exportJWK, generateKeyPair } from 'jose'
import { z } from 'zod'
import { StartupError } from '../../lib/startupError.ts'
import { RETIRING_SECONDS } from './lifetimes.ts'
import { type WatchedFile, openWatchedFile } from './watchedFile.ts'
import { editPrivate, issuerFolder, readOrCreatePrivate } from '../privateFile.ts'

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

/** A single key is a ring without retiring keys. */
const keyRingSchema = z.union([
  z.strictObject({
    signing: signingKeySchema,
    retiring: z.array(z.strictObject({ key: publicKeySchema, until: z.int() })),
  }),
  signingKeySchema.transform(signing => ({ signing, retiring: [] })),
])

/** A private JWK. `kid` is its RFC 7638 thumbprint, so a new key can never have the id of an old one. */
export type SigningKey = z.infer<typeof signingKeySchema>

export type PublicKey = z.infer<typeof publicKeySchema>

/** One key signs. The public halves of earlier ones verify until none of their tokens can be valid. */
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
    // Without the cause, because a parser's message may quote the key.
    throw new StartupError(
      `The data directory's issuer/${FILE_NAME} is not an ES256 key; remove it, and a new one is created.`,
    )
  }
}

const loadKeyRing = async (dataDir: string): Promise<KeyRing> =>
  parse(await readOrCreatePrivate(issuerFolder(dataDir), FILE_NAME, generate))

/** The present keys of the issuer, created at first use. Throws a StartupError if they cannot be read. */
export const openKeyRing = (dataDir: string, onError: (error: unknown) => void): Promise<WatchedFile<KeyRing>> =>
  openWatchedFile(join(issuerFolder(dataDir), FILE_NAME), () => loadKeyRing(dataDir), onError)

/** The present signing key. Throws a StartupError if it cannot be read. */
export const loadSigningKey = async (dataDir: string): Promise<SigningKey> => (await loadKeyRing(dataDir)).signing

export const publicKeyOf = ({ d: _, ...open }: SigningKey): PublicKey => open

const nowSeconds = (): number => Math.floor(Date.now() / 1000)

const retiringAt = ({ retiring }: KeyRing, seconds: number): KeyRing['retiring'] =>
  retiring.filter(({ until }) => until > seconds)

/** The signing key, and retired keys whose tokens may still be valid. */
export const publishedKeys = (ring: KeyRing): readonly PublicKey[] => [
  publicKeyOf(ring.signing),
  ...retiringAt(ring, nowSeconds()).map(({ key }) => key),
]

/**
 * The old key stays published until its tokens have expired; with `now`, if others may have it, they are refused within
 * a minute. Throws a StartupError.
 */
export const rotateSigningKey = async (dataDir: string, { now }: { readonly now: boolean }): Promise<KeyRing> => {
  const signing = await generateKey()
  let rotated: KeyRing = { signing, retiring: [] }
  await editPrivate(issuerFolder(dataDir), FILE_NAME, generate, async content => {
    const ring = parse(content)
    const last = { key: publicKeyOf(ring.signing), until: nowSeconds() + RETIRING_SECONDS }
    rotated = { signing, retiring: now ? [] : [last, ...retiringAt(ring, nowSeconds())] }
    return textOf(rotated)
  })
  return rotated
}
