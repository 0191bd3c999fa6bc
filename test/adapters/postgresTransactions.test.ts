import { expect } from 'chai'
import { openDatabase } from '../../src/adapters/postgres/database.ts'
import { type Database, Unavailable } from '../../src/ports.ts'
import { newDatabase } from '../support/postgres.ts'
import { rejectionOf } from '../support/rejection.ts'

describe('Statements of a transaction that do not wait for each other', () => {
  let connectionString: string
  const opened: Database[] = []

  const open = (statementTimeoutMs: number): Database => {
    const database = openDatabase({ connectionString, statementTimeoutMs })
    opened.push(database)
    return database
  }

  before(async () => {
    connectionString = await newDatabase()
  })
  after(() => Promise.all(opened.map(database => database.close())))

  it('are executed in the order of their calls', async () => {
    const database = open(60_000)
    await database.sql('create table counted (n int not null)')
    const result = await database.transaction(async sql => {
      const first = sql('insert into counted select 1 from pg_sleep(0.1)')
      const [second, third] = [sql('update counted set n = n + 1'), sql<{ n: number }>('select n from counted')]
      await Promise.all([first, second])
      return third
    })
    expect(result).to.deep.equal([{ n: 2 }])
  })

  it('are not sent after the first failure has ended the transaction', async () => {
    const database = open(60_000)
    await database.sql('create table kept (n int not null)')
    const failing = database.transaction(sql =>
      Promise.all([
        sql('select nonsense'),
        ...Array.from({ length: 5 }, (_, n) => sql('insert into kept values ($1)', [n])),
      ]),
    )
    expect(await rejectionOf(failing)).to.be.instanceOf(Error)
    expect(await database.sql('select n from kept')).to.deep.equal([])
  })

  it('belong to it also when it does not wait for them', async () => {
    const database = open(60_000)
    await database.sql('create table joined (n int not null)')
    await database.transaction(async sql => {
      for (const n of [1, 2, 3]) void sql('insert into joined values ($1)', [n])
    })
    expect(await database.sql('select n from joined')).to.deep.equal([{ n: 1 }, { n: 2 }, { n: 3 }])
  })

  it('are not sent after an answer that did not come in time', async () => {
    let answers: readonly PromiseSettledResult<unknown>[] = []
    const failing = open(200).transaction(async sql => {
      const sent = [sql('select pg_sleep(60)'), sql('select nonsense')]
      answers = await Promise.allSettled(sent)
      await Promise.all(sent)
    })
    expect(await rejectionOf(failing)).to.be.instanceOf(Unavailable)
    expect(answers).to.have.length(2)
    // Postgres would answer the second one with an error of its own.
    for (const answer of answers)
      expect(answer.status === 'rejected' && answer.reason)
        .to.be.instanceOf(Unavailable)
        .with.property('effect', 'none')
  })
})
