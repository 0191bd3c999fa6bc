import type { ICustomPartitioner } from 'kafkajs'

/** As Java producers and kafkajs choose it (murmur2). That of kafkajs computes in BigInt: a tenth of a producer's time. */

const SEED = 0x9747b28c
const FACTOR = 0x5bd1e995
const MIX_SHIFT = 24
const FIRST_FINAL_SHIFT = 13
const LAST_FINAL_SHIFT = 15
const WORD_BYTES = 4
const WITHOUT_SIGN = 0x7f_ff_ff_ff

/** The last bytes, fewer than a word, as one little-endian number. */
const restOf = (bytes: Buffer, from: number): number => {
  let rest = 0
  for (let at = bytes.length - 1; at >= from; at--) rest = (rest << 8) | (bytes[at] ?? 0)
  return rest
}

/** The 32 bits of the hash, as a signed integer. */
const murmur2 = (bytes: Buffer): number => {
  const restAt = bytes.length - (bytes.length % WORD_BYTES)
  let hash = SEED ^ bytes.length
  for (let at = 0; at < restAt; at += WORD_BYTES) {
    const word = Math.imul(bytes.readInt32LE(at), FACTOR)
    hash = Math.imul(hash, FACTOR) ^ Math.imul(word ^ (word >>> MIX_SHIFT), FACTOR)
  }
  if (restAt < bytes.length) hash = Math.imul(hash ^ restOf(bytes, restAt), FACTOR)
  hash = Math.imul(hash ^ (hash >>> FIRST_FINAL_SHIFT), FACTOR)
  return hash ^ (hash >>> LAST_FINAL_SHIFT)
}

export const partitionOf = (key: string | Buffer, partitions: number): number =>
  (murmur2(typeof key === 'string' ? Buffer.from(key) : key) & WITHOUT_SIGN) % partitions

/** For messages that have a key, as all facts do. Throws for one that has none. */
export const partitionByKey: ICustomPartitioner =
  () =>
  ({ partitionMetadata, message }) => {
    if (message.key === null || message.key === undefined) throw new Error('A message has no key.')
    return partitionOf(message.key, partitionMetadata.length)
  }
