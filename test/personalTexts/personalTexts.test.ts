import { setImmediate } from 'node:timers/promises'
import { expect } from 'chai'
import { openDatabase } from '../../src/adapters/postgres/database.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import { NO_BYTE_QUOTA } from '../../src/commands/quotas/byteQuota.ts'
import { createPersonalTexts, type PersonalText, type PersonalTexts } from '../../src/personalTexts/personalTexts.ts'
import { createLedgerTables } from '../../src/feeds/ledgerTables.ts'
import { type Database, type Sql, Unavailable, type World } from '../../src/ports.ts'
import { eventually } from '../support/eventually.ts'
import { newDatabase } from '../support/postgres.ts'
import { rejectionOf } from '../support/rejection.ts'

/** The storage of many texts at once: those that come while a statement is under way share the next one. */

const SECRET = Buffer.alloc(32, 7)
const NUL = '\u0000'
/** Generous, for a machine under load. */
const STATEMENT_TIMEOUT_MS = 60_000

describe('the storage of personal texts', () => {
  let database: Database
  let otherProcess: Database
  before(async () => {
    const connectionString = await newDatabase()
    database = openDatabase({ connectionString, statementTimeoutMs: STATEMENT_TIMEOUT_MS })
    otherProcess = openDatabase({ connectionString, statementTimeoutMs: STATEMENT_TIMEOUT_MS })
    await createLedgerTables(database)
  })
  after(async () => {
    await database.close()
    await otherProcess.close()
  })

  let texts = 0
  const aText = (text = `INV Jane Doe ${++texts}`): PersonalText => ({ tenant: 't', kind: 'payment_reference', text })
  const someTexts = (count: number): PersonalText[] => Array.from({ length: count }, () => aText())
  const textsOn = (sql: Sql, world: World = realWorld()): PersonalTexts =>
    createPersonalTexts(sql, {
      world,
      byteQuota: NO_BYTE_QUOTA,
      idSecret: async () => SECRET,
    })

  /** The statements that were sent. They wait for `release`, which decides about all of them. */
  const held = (real: Sql) => {
    const statements: (readonly unknown[])[] = []
    const reached = Promise.withResolvers<void>()
    const released = Promise.withResolvers<void>()
    const sql: Sql = async (text, values) => {
      statements.push(values ?? [])
      reached.resolve()
      await released.promise
      return real(text, values)
    }
    return { sql, statements, reached: reached.promise, release: released.resolve, fail: released.reject }
  }
  /** Other texts wait for a statement however long it takes. */
  const patient = (): World => ({ ...realWorld(), sleep: () => new Promise(() => undefined) })
  /** All given while the statement of the first is under way. */
  const storedTogether = async (given: readonly PersonalText[]) => {
    const { sql, statements, reached, release } = held(database.sql)
    const store = textsOn(sql, patient())
    const first = store.store(aText())
    await reached
    const stored: Promise<string | undefined>[] = []
    for (const text of given) {
      stored.push(store.store(text))
      // Requests that arrive together are read in several turns of the event loop.
      await setImmediate()
    }
    release()
    await first
    return { outcomes: await Promise.allSettled(stored), statements: statements.length - 1, store }
  }
  const tokenIn = (outcome: PromiseSettledResult<string | undefined> | undefined): string =>
    (outcome?.status === 'fulfilled' ? outcome.value : undefined) ?? `no token: ${JSON.stringify(outcome)}`
  const textOf = async (token: string): Promise<unknown> =>
    (await database.sql('select text from personal_texts where token = $1', [token]))[0]?.['text']
  const erase = (token: string) =>
    database.sql('update personal_texts set text = null, erased_at = now() where token = $1', [token])

  it('is one statement for all texts of one time, and each has a token of its own', async () => {
    const given = someTexts(20)
    const { outcomes, statements } = await storedTogether(given)
    expect(statements).to.equal(1)
    const tokens = outcomes.map(tokenIn)
    expect(new Set(tokens)).to.have.lengthOf(given.length)
    expect(await Promise.all(tokens.map(textOf))).to.deep.equal(given.map(({ text }) => text))
  })

  it('gives one text one token: twice in a statement, and in a later one', async () => {
    const text = aText()
    const { outcomes, store } = await storedTogether([text, aText(), { ...text }])
    expect(tokenIn(outcomes[0])).to.equal(tokenIn(outcomes[2]))
    const later = await Promise.all([store.store(text), textsOn(otherProcess.sql).store(text)])
    expect(later).to.deep.equal([tokenIn(outcomes[0]), tokenIn(outcomes[0])])
    expect(await database.sql('select token from personal_texts where text = $1', [text.text])).to.have.lengthOf(1)
  })

  it('does not give one tenant the token of another, nor one kind that of another', async () => {
    const text = aText()
    const given = [text, { ...text, tenant: 'u' }, { ...text, kind: 'customer_reference' as const }]
    const { outcomes } = await storedTogether(given)
    expect(new Set(outcomes.map(tokenIn))).to.have.lengthOf(3)
    expect(tokenIn(outcomes[2])).to.match(/^prs_/)
  })

  it('stores an erased text only when it is asked to store it again, and others beside it', async () => {
    const [erased, present] = [aText(), aText()]
    const token = tokenIn((await storedTogether([erased])).outcomes[0])
    await erase(token)
    const { outcomes, store } = await storedTogether([erased, present])
    expect(outcomes[0]).to.deep.equal({ status: 'fulfilled', value: undefined })
    expect(await textOf(tokenIn(outcomes[1]))).to.equal(present.text)
    const again = await store.storeAgain(erased)
    expect(again).to.not.equal(token)
    expect([await store.storeAgain(erased), await store.store(erased)]).to.deep.equal([again, again])
    expect([await textOf(token), await textOf(again)]).to.deep.equal([null, erased.text])
  })

  it('fails the request of a text that Postgres refuses, and no other', async () => {
    const [before, refused, after] = [aText(), aText(`a${NUL}b ${++texts}`), aText()]
    const { outcomes } = await storedTogether([before, refused, after])
    expect(outcomes.map(({ status }) => status)).to.deep.equal(['fulfilled', 'rejected', 'fulfilled'])
    expect(outcomes[1]).to.have.nested.property('reason.code', '22021')
    expect(await textOf(tokenIn(outcomes[2]))).to.equal(after.text)
  })

  it('has no effect for any of them when Postgres does not answer, and stores later ones', async () => {
    const { sql, statements, reached, fail } = held(database.sql)
    const store = textsOn(sql, patient())
    const first = rejectionOf(store.store(aText()))
    await reached
    const others = someTexts(3).map(text => rejectionOf(store.store(text)))
    fail(new Unavailable('database', { effect: 'unknown' }))
    for (const error of [await first, ...(await Promise.all(others))])
      expect(error).to.be.instanceOf(Unavailable).and.to.have.property('effect', 'none')
    expect(statements).to.have.lengthOf(2)
    expect(await textsOn(database.sql).store(aText())).to.match(/^prf_/)
  })

  it('does not wait for the answer of a statement for long', async () => {
    const { sql, statements, reached, release } = held(database.sql)
    const store = textsOn(sql, { ...realWorld(), sleep: async () => undefined })
    const first = store.store(aText())
    await reached
    const second = store.store(aText())
    await eventually(() => statements.length === 2)
    release()
    expect(await Promise.all([first, second])).to.have.lengthOf(2)
  })

  it('stores the same texts from two processes in whatever order, once each', async () => {
    for (let round = 1; round <= 5; round += 1) {
      const given = someTexts(400)
      const stores = [textsOn(database.sql, patient()), textsOn(otherProcess.sql, patient())] as const
      const outcomes = await Promise.all([
        ...given.map(text => stores[0].store(text)),
        ...given.toReversed().map(text => stores[1].store(text)),
      ])
      const rows = await database.sql('select token from personal_texts where text = any($1)', [
        given.map(({ text }) => text),
      ])
      expect(rows).to.have.lengthOf(given.length)
      const stored = new Set(rows.map(({ token }) => token))
      for (const token of outcomes) if (token !== undefined) expect(stored.has(token)).to.equal(true)
    }
  })
})
