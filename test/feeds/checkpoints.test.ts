import { expect } from 'chai'
import {
  acquireCheckpoint,
  EpochSuperseded,
  FIRST_PARAMETER,
  moveCheckpoint,
  moveCheckpointAlone,
  moveCheckpointWith,
  positionOf,
} from '../../src/feeds/checkpoints.ts'
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

  it('moves with the rows that belong to it, and writes none of them in an old epoch', async () => {
    await database.sql('create table made (id int)')
    const write = `made as (insert into made select given.id from moved cross join unnest($${FIRST_PARAMETER}::int[]) given(id))`
    await acquireCheckpoint(database.sql, 'f', 1n)
    await moveCheckpointWith(database.sql, { name: 'f', position: 5n, epoch: 1n }, write, [[1, 2]])
    await acquireCheckpoint(database.sql, 'f', 2n)
    const late = moveCheckpointWith(database.sql, { name: 'f', position: 9n, epoch: 1n }, write, [[3]])
    expect(await rejectionOf(late)).to.be.instanceOf(EpochSuperseded)
    expect(await database.sql('select id from made order by id')).to.deep.equal([{ id: 1 }, { id: 2 }])
    expect(await positionOf(database.sql, 'f')).to.equal(5n)
  })

  it('waits for no disk when no rows belong to it, and other commits of the connection do', async () => {
    await acquireCheckpoint(database.sql, 'f', 1n)
    const setting = async (sql: Database['sql']) => {
      const [row] = await sql<{ synchronous_commit: string }>('show synchronous_commit')
      return row?.synchronous_commit
    }
    const move = { name: 'f', position: 5n, epoch: 1n }
    await database.transaction(async sql => {
      await moveCheckpoint(sql, ['f'], 4n, 1n)
      expect(await setting(sql)).to.equal('on')
      await moveCheckpointWith(sql, move, 'nothing as (select)', [])
      expect(await setting(sql)).to.equal('on')
    })
    await database.transaction(async sql => {
      await moveCheckpointAlone(sql, move)
      expect(await setting(sql)).to.equal('off')
    })
    const settings = Array.from({ length: 10 }, () => setting(database.sql))
    expect(new Set(await Promise.all(settings))).to.deep.equal(new Set(['on']))
  })

  it('that no rows belong to moves forward alone, and not for a holder that was replaced', async () => {
    await acquireCheckpoint(database.sql, 'a', 1n)
    const move = (position: bigint, epoch: bigint) => moveCheckpointAlone(database.sql, { name: 'a', position, epoch })
    await move(7n, 1n)
    await move(6n, 1n)
    expect(await positionOf(database.sql, 'a')).to.equal(7n)
    await acquireCheckpoint(database.sql, 'a', 2n)
    const refused = await move(8n, 1n).catch((error: unknown) => error)
    expect(refused).to.be.instanceOf(EpochSuperseded)
    await move(9n, 2n)
    expect(await positionOf(database.sql, 'a')).to.equal(9n)
  })
})
