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
import { type Database, Unavailable } from '../../src/ports.ts'
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
      await moveCheckpointAlone({ ...database, sql }, move)
      expect(await setting(sql)).to.equal('off')
    })
    const settings = Array.from({ length: 10 }, () => setting(database.sql))
    expect(new Set(await Promise.all(settings))).to.deep.equal(new Set(['on']))
  })

  describe('that no rows belong to', () => {
    /** The database with the statements that it was sent, each held until `release`. */
    const watched = () => {
      const sent: string[] = []
      const held: (() => void)[] = []
      const sql: Database['sql'] = async (text, values) => {
        sent.push(text)
        await new Promise<void>(resolve => held.push(resolve))
        return database.sql(text, values)
      }
      return { counted: { ...database, sql }, sent, release: () => held.shift()?.() }
    }
    const acquireAll = async (names: readonly string[], epoch = 1n): Promise<void> => {
      for (const name of names) await acquireCheckpoint(database.sql, name, epoch)
    }
    const positionsOf = (names: readonly string[]): Promise<bigint[]> =>
      Promise.all(names.map(name => positionOf(database.sql, name)))

    it('moves in one statement with the others of the same time, and with those that wait for it', async () => {
      const names = ['a', 'b', 'c', 'd']
      await acquireAll(names)
      const { counted, sent, release } = watched()
      const move = (name: string, position: bigint) => moveCheckpointAlone(counted, { name, position, epoch: 1n })
      const first = [move('a', 5n), move('b', 6n)]
      await Promise.resolve()
      const second = [move('c', 7n), move('d', 8n), move('a', 9n)]
      expect(sent).to.have.length(1)
      release()
      await Promise.all(first)
      expect(await positionsOf(names)).to.deep.equal([5n, 6n, 0n, 0n])
      release()
      await Promise.all(second)
      expect(sent).to.have.length(2)
      expect(await positionsOf(names)).to.deep.equal([9n, 6n, 7n, 8n])
    })

    it('moves to the later of two positions, whose moves settle in their order', async () => {
      await acquireAll(['a'])
      const settled: bigint[] = []
      const move = (position: bigint) =>
        moveCheckpointAlone(database, { name: 'a', position, epoch: 1n }).then(() => settled.push(position))
      await Promise.all([move(5n), move(7n), move(6n)])
      expect(settled).to.deep.equal([5n, 7n, 6n])
      expect(await positionOf(database.sql, 'a')).to.equal(7n)
    })

    it('keeps no other from moving when its holder was replaced', async () => {
      await acquireAll(['a', 'b'])
      await acquireCheckpoint(database.sql, 'b', 2n)
      const move = (name: string, epoch: bigint) => moveCheckpointAlone(database, { name, position: 5n, epoch })
      const [a, b, ofSuccessor] = await Promise.allSettled([move('a', 1n), move('b', 1n), move('b', 2n)])
      expect(b).to.have.property('reason').that.is.instanceOf(EpochSuperseded)
      expect([a?.status, ofSuccessor?.status]).to.deep.equal(['fulfilled', 'fulfilled'])
      expect(await positionsOf(['a', 'b'])).to.deep.equal([5n, 5n])
    })

    it('can move after a failure, of which each of the moves is told', async () => {
      await acquireAll(['a', 'b'])
      let isBroken = true
      const failing: Database = {
        ...database,
        sql: async (text, values) => {
          if (isBroken) throw new Unavailable('database', { effect: 'none', cause: new Error('gone') })
          return database.sql(text, values)
        },
      }
      const move = (name: string) => moveCheckpointAlone(failing, { name, position: 5n, epoch: 1n })
      for (const failed of await Promise.allSettled([move('a'), move('b')]))
        expect(failed).to.have.property('reason').that.is.instanceOf(Unavailable)
      isBroken = false
      await Promise.all([move('a'), move('b')])
      expect(await positionsOf(['a', 'b'])).to.deep.equal([5n, 5n])
    })
  })
})
