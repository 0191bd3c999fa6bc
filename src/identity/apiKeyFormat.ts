import { crc32 } from 'node:zlib'
import type { ApiKeyId } from '../../streams/ids.ts'

/**
 * `lk_<env>_<id>_<secret>_<crc>`: the id's 26 characters, 256 bits, and a CRC-32 of all before, in base 62 of fixed
 * width. It rejects typos without a look-up.
 */

/** `dev` keys belong to the embedded profile. */
export type KeyEnvironment = 'dev' | 'live'

const BASE_62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const SECRET_CHARS = 43
const CRC_CHARS = 6
const KEY =
  /^lk_(?<environment>[a-z]{1,8})_(?<suffix>[0-9A-HJKMNP-TV-Z]{26})_(?<secret>[0-9A-Za-z]{43})_[0-9A-Za-z]{6}$/

const base62 = (value: bigint, chars: number): string => {
  let text = ''
  for (let rest = value; text.length < chars; rest /= 62n) text = `${BASE_62[Number(rest % 62n)]}${text}`
  return text
}

const checksumOf = (text: string): string => base62(BigInt(crc32(text)), CRC_CHARS)

/** The public prefix of a key: identifies it, without a part of its secret. */
export const prefixOf = (environment: KeyEnvironment, id: ApiKeyId): string =>
  `lk_${environment}_${id.slice('key_'.length)}`

/** Formats a key. `secret`: 32 bytes. */
export const formatKey = (environment: KeyEnvironment, id: ApiKeyId, secret: Uint8Array): string => {
  const digits = base62(BigInt(`0x${Buffer.from(secret).toString('hex')}`), SECRET_CHARS)
  const checked = `${prefixOf(environment, id)}_${digits}`
  return `${checked}_${checksumOf(checked)}`
}

export type ParsedKey = { readonly environment: string; readonly id: ApiKeyId; readonly secret: string }

/** The parts of a key, or the fault of a malformed one. */
export const parseKey = (text: string): ParsedKey | 'key_malformed' | 'key_checksum_wrong' => {
  const { environment, suffix, secret } = KEY.exec(text)?.groups ?? {}
  if (environment === undefined || suffix === undefined || secret === undefined) return 'key_malformed'
  const end = text.length - CRC_CHARS
  if (checksumOf(text.slice(0, end - 1)) !== text.slice(end)) return 'key_checksum_wrong'
  return { environment, id: `key_${suffix}`, secret }
}
