import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { Partitioners } from 'kafkajs'
import { partitionByKey, partitionOf } from '../../src/adapters/kafka/partitioner.ts'

/** Partitions of keys, compared with those of kafkajs, which facts of released versions were assigned by. */

const PARTITIONS = 12
const metadata = Array.from({ length: PARTITIONS }, (_, partitionId) => ({
  partitionId,
  partitionErrorCode: 0,
  leader: 1,
  replicas: [1],
  isr: [1],
}))
const assigned = (by: typeof partitionByKey, key: string | Buffer): number =>
  by()({ topic: 't', partitionMetadata: metadata, message: { key, value: '' } })

/** Texts of every length up to 40 characters: ids, text of one to four bytes per character, and the empty key. */
const texts = Array.from({ length: 41 }, (_, length) => [
  'pay_01JD8Z4M7Q0V3X5B9C2N6R8T1W4Y7A0D3F5G'.slice(0, length),
  'ß€日本語😀é'.repeat(6).slice(0, length),
  'ÿ'.repeat(length),
]).flat()

describe('partitions of keys', () => {
  it('are those of kafkajs for texts of every length', () => {
    for (const key of texts)
      expect(assigned(partitionByKey, key), key).to.equal(assigned(Partitioners.DefaultPartitioner, key))
  })

  it('are those of kafkajs for random bytes', () => {
    for (let count = 0; count < 2_000; count++) {
      const key = randomBytes(count % 70)
      expect(assigned(partitionByKey, key), key.toString('hex')).to.equal(
        assigned(Partitioners.DefaultPartitioner, key),
      )
    }
  })

  it('are the same for a text and its bytes, and below the number of partitions', () => {
    for (const key of texts)
      for (const partitions of [1, 2, 12, 1_000]) {
        const partition = partitionOf(key, partitions)
        expect(partition)
          .to.equal(partitionOf(Buffer.from(key), partitions))
          .and.within(0, partitions - 1)
      }
  })

  it('are refused for a message without a key', () => {
    expect(() => partitionByKey()({ topic: 't', partitionMetadata: metadata, message: { value: '' } })).to.throw(
      'no key',
    )
  })
})
