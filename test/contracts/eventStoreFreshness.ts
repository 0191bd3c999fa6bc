import { expect } from 'chai'
import type { EventStore } from '../../src/ports.ts'
import { all, event, type EventStoreUnderTest, newStream, revisionsOf } from './eventStoreFixtures.ts'

const STREAMS = 6
const APPENDS = 120
const READERS = 4

/** The reads of one client while another one appends: a client may remember only as much as stays true. */
export const describeFreshness = (started: () => EventStoreUnderTest): void => {
  describe('reading while another client appends', () => {
    let writer: EventStore
    let reader: EventStore

    before(() => {
      writer = started().open()
      reader = started().open()
    })
    after(async () => {
      await writer.close()
      await reader.close()
    })

    const newRevisions = async (stream: string, from: number): Promise<bigint[]> =>
      revisionsOf(await all(reader.readStream(stream, { from: BigInt(from) })))

    const append = async (stream: string, revision: number): Promise<void> => {
      const appended = await writer.append(stream, [event()], revision === 0 ? 'no_stream' : BigInt(revision - 1))
      expect(appended).to.deep.include({ ok: true, revision: BigInt(revision) })
    }

    it('finds nothing new in streams that have not grown, and then the event that one of them gets', async () => {
      const streams = Array.from({ length: STREAMS }, () => newStream())
      for (const stream of streams) await append(stream, 0)
      for (let revision = 1; revision < STREAMS; revision += 1) {
        for (let times = 0; times < 3; times += 1)
          expect(await Promise.all(streams.map(stream => newRevisions(stream, revision)))).to.deep.equal(
            streams.map(() => []),
          )
        for (const stream of streams) {
          await append(stream, revision)
          expect(await newRevisions(stream, revision)).to.deep.equal([BigInt(revision)])
          expect(await newRevisions(stream, revision + 1)).to.deep.equal([])
        }
      }
    })

    it('finds the first event of a stream that did not exist', async () => {
      const stream = newStream()
      expect(await all(reader.readStream(stream))).to.deep.equal([])
      expect(await newRevisions(stream, 0)).to.deep.equal([])
      await append(stream, 0)
      expect(await newRevisions(stream, 0)).to.deep.equal([0n])
    })

    it('finds in each read all events that were acknowledged before it began', async () => {
      const streams = Array.from({ length: STREAMS }, () => ({ name: newStream(), acknowledged: -1 }))
      let isWriting = true
      const missed: string[] = []
      const write = async (): Promise<void> => {
        for (let n = 0; n < APPENDS; n += 1) {
          const stream = streams[(n * n) % STREAMS]
          if (stream === undefined) continue
          await append(stream.name, stream.acknowledged + 1)
          stream.acknowledged += 1
        }
        isWriting = false
      }
      const read = async (): Promise<void> => {
        const known = streams.map(() => -1)
        do {
          const rounds = streams.map(async ({ name, acknowledged }, n) => {
            const actual = await newRevisions(name, (known[n] ?? -1) + 1)
            known[n] = Math.max(known[n] ?? -1, Number(actual.at(-1) ?? -1))
            if ((known[n] ?? -1) < acknowledged) missed.push(`${name} up to ${acknowledged}: ${known[n]}`)
          })
          await Promise.all(rounds)
        } while (isWriting)
      }
      await Promise.all([write(), ...Array.from({ length: READERS }, read)])
      expect(missed).to.deep.equal([])
    })
  })
}
