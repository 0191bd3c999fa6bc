import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'

const SALT_BYTES = 16
const HASH_BYTES = 32
/** 15 bytes are 120 bits: not guessable, and short enough to be typed. */
const GENERATED_BYTES = 15
export const PASSWORD_CHARACTERS_MIN = 12
export const PASSWORD_CHARACTERS_MAX = 256

/** The cost of one guess: 32 MiB and about 60 ms. Stored with the hash, so it can be raised later. */
const COST = { cost: 32_768, block_size: 8, parallelization: 1 } as const
const MEMORY_MAX_BYTES = 128 * 1024 * 1024

export const passwordHashSchema = z.strictObject({
  algorithm: z.literal('scrypt'),
  cost: z.int().min(16_384).max(65_536),
  block_size: z.int().min(8).max(8),
  parallelization: z.int().min(1).max(4),
  salt: z.base64url(),
  hash: z.base64url(),
})

export type PasswordHash = z.infer<typeof passwordHashSchema>

/** Unicode normalization, since keyboards produce the same password in different forms. */
const bytesOf = (password: string): Buffer => Buffer.from(password.normalize('NFKC'), 'utf8')

const derive = (password: string, { salt, cost, block_size, parallelization }: Omit<PasswordHash, 'hash'>) =>
  new Promise<Buffer>((resolve, reject) => {
    const options = { N: cost, r: block_size, p: parallelization, maxmem: MEMORY_MAX_BYTES }
    scrypt(bytesOf(password), Buffer.from(salt, 'base64url'), HASH_BYTES, options, (error, hash) =>
      error ? reject(error) : resolve(hash),
    )
  })

export const hashPassword = async (password: string): Promise<PasswordHash> => {
  const parameters = { algorithm: 'scrypt', ...COST, salt: randomBytes(SALT_BYTES).toString('base64url') } as const
  return { ...parameters, hash: (await derive(password, parameters)).toString('base64url') }
}

/** The hash of an unknown password, for users without one. */
const UNKNOWN_PASSWORD: PasswordHash = {
  algorithm: 'scrypt',
  ...COST,
  salt: Buffer.alloc(SALT_BYTES).toString('base64url'),
  hash: Buffer.alloc(HASH_BYTES).toString('base64url'),
}

/** Takes the same time without a hash, so the duration does not reveal which users exist. */
export const isPassword = async (password: string, hash: PasswordHash | undefined): Promise<boolean> => {
  const expected = hash ?? UNKNOWN_PASSWORD
  const actualBytes = await derive(password, expected)
  const expectedBytes = Buffer.from(expected.hash, 'base64url')
  return (
    actualBytes.length === expectedBytes.length && timingSafeEqual(actualBytes, expectedBytes) && hash !== undefined
  )
}

export const generatePassword = (): string => randomBytes(GENERATED_BYTES).toString('base64url')
