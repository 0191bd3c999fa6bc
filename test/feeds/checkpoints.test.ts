import { expect } from 'chai'
import { moveCheckpoint, positionOf, EpochSuperseded, acquireCheckpoint } from '../../src/feeds/checkpoints.ts'
import type { Database } from '../../src/ports.ts'
import { rejectionOf } from '../support/rejection.ts'
import { useTestPostgres } from './fixtures.ts'

describe('a checkpoint', () => {
  const postgres = useTestPostgres()
  let database: Database

  beforeEach(async () => {
    database = await postgres.ledgerDatabase()
  })

  it('is at the start before the first batch', async () => {
    expect(await positionOf(database.sql, 'f')).to.equal(0n)
    expect(await acquireCheckpoint(database.sql, 'f', 1n)).to.equal('start')
    expect(await positionOf(database.sql, 'f')).to.equal(0n)
  })

  it('keeps its position for the same holder and for the next', async () => {
    await acquireCheckpoint(database.sql, 'f', 1n)
    await moveCheckpoint(database.sql, ['f'], 77n, 1n)
    expect(await acquireCheckpoint(database.sql, 'f', 1n)).to.equal(77n)
    expect(await acquireCheckpoint(database.sql, 'f', 2n)).to.equal(77n)
    expect(await positionOf(database.sql, 'f')).to.equal(77n)
  })

  it('holds the largest position of the log', async () => {
    const largest = 2n ** 63n - 1n
    await acquireCheckpoint(database.sql, 'f', 1n)
    await moveCheckpoint(database.sql, ['f'], largest, 1n)
    expect(await acquireCheckpoint(database.sql, 'f', 1n)).to.equal(largest)
  })

  it('never goes back', async () => {
    await acquireCheckpoint(database.sql, 'f', 1n)
    await moveCheckpoint(database.sql, ['f'], 77n, 1n)
    await moveCheckpoint(database.sql, ['f'], 76n, 1n)
    expect(await positionOf(database.sql, 'f')).to.equal(77n)
  })

  it('cannot be moved or acquired by a holder that was replaced', async () => {
    await acquireCheckpoint(database.sql, 'f', 1n)
    await acquireCheckpoint(database.sql, 'f', 2n)
    expect(await rejectionOf(moveCheckpoint(database.sql, ['f'], 5n, 1n))).to.be.instanceOf(EpochSuperseded)
    expect(await rejectionOf(acquireCheckpoint(database.sql, 'f', 1n))).to.be.instanceOf(EpochSuperseded)
    await moveCheckpoint(database.sql, ['f'], 6n, 2n)
    expect(await positionOf(database.sql, 'f')).to.equal(6n)
  })

  it('moves together with others, all of them or none', async () => {
    await acquireCheckpoint(database.sql, 'f', 1n)
    await acquireCheckpoint(database.sql, 'g', 1n)
    await acquireCheckpoint(database.sql, 'g', 2n)
    const move = database.transaction(sql => moveCheckpoint(sql, ['f', 'g'], 5n, 1n))
    expect(await rejectionOf(move)).to.be.instanceOf(EpochSuperseded)
    expect(await positionOf(database.sql, 'f')).to.equal(0n)
  })

  it('rolls back the work of its transaction when it cannot move', async () => {
    await acquireCheckpoint(database.sql, 'f', 2n)
    const work = database.transaction(async sql => {
      await sql('create table made (id int)')
      await moveCheckpoint(sql, ['f'], 5n, 1n)
    })
    expect(await rejectionOf(work)).to.be.instanceOf(EpochSuperseded)
    expect(await database.sql(`select to_regclass('made') as made`)).to.deep.equal([{ made: null }])
  })
})
