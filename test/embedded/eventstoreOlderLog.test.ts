import { EventStoreDBClient } from '@eventstore/db-client'
import { expect } from 'chai'
import pg from 'pg'
import { type Raw, collect, made, newStream, startRaw } from './rawEventStoreClient.ts'

describe('embedded event store on a log of an older build', () => {
  let raw: Raw
  let client: EventStoreDBClient

  before(async () => {
    raw = await startRaw()
  })
  after(async () => {
    await client.dispose()
    await raw.stop()
  })

  /** Older builds numbered the events of the log: 1, 2, 3 … */
  const renumber = async (): Promise<void> => {
    const session = new pg.Client({ connectionString: raw.node.databaseUrl })
    await session.connect()
    await session.query(`update events set position = number from (
      select position as was, row_number() over (order by position) as number from events) as counted where position = was`)
    await session.end()
  }

  it('keeps the positions of readers, and continues after them', async () => {
    const [older, newer] = [newStream(), newStream()]
    await raw.append(older, 3)
    await renumber()
    await raw.node.restart()
    client = EventStoreDBClient.connectionString(raw.node.address)
    const before = await collect(client.readAll())
    expect(before.map(({ position }) => position?.commit)).to.deep.equal(before.map((_, n) => BigInt(n + 1)))
    await client.appendToStream(newer, [made(), made()])
    const noted = before.at(-2)?.position
    const rest = await collect(client.readAll({ fromPosition: noted ?? 'end' }))
    expect(rest.map(({ streamId, revision }) => `${streamId}@${revision}`)).to.deep.equal([
      `${older}@1`,
      `${older}@2`,
      `${newer}@0`,
      `${newer}@1`,
    ])
    const seen: string[] = []
    for await (const { event } of client.subscribeToAll({ fromPosition: noted ?? 'end' })) {
      seen.push(`${event?.streamId}@${event?.revision}`)
      if (seen.length === 3) break
    }
    expect(seen).to.deep.equal([`${older}@2`, `${newer}@0`, `${newer}@1`])
  })
})
