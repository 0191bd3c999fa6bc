import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { openDatabase } from '../../src/adapters/postgres/database.ts'
import { openDatabaseLoginThrottle } from '../../src/embedded/issuer/databaseLoginThrottle.ts'
import { createMemoryLoginThrottle, type LoginThrottle } from '../../src/embedded/issuer/loginThrottle.ts'
import type { Database } from '../../src/ports.ts'
import { inParallel } from '../support/client.ts'
import { sharedService } from '../support/service.ts'

type Implementation = {
  readonly open: () => Promise<LoginThrottle>
  /** Advances the time to the end of the open windows. */
  readonly pass: () => Promise<void>
  /** The number of other user names that an attacker tries. */
  readonly others: number
}

/** The contract of the login throttle, for each of its stores. */
const loginThrottleContract = (implementation: () => Implementation): void => {
  const newName = (): string => `user-${randomUUID()}`
  /** Failed attempts; the seconds that each has to wait, undefined for those that are accepted. */
  const failures = async (
    throttle: LoginThrottle,
    times: number,
    attempt: () => { username: string; address: string },
  ) => inParallel(10, Array.from({ length: times }), () => throttle.begin(attempt()))
  const ACCEPTED = Array.from({ length: 10 }, () => undefined)

  it('refuses a user after ten failures, of twenty concurrent attempts too, and no other user', async () => {
    const throttle = await implementation().open()
    const username = newName()
    const waits = await Promise.all(Array.from({ length: 20 }, () => throttle.begin({ username, address: newName() })))
    expect(waits.filter(wait => wait === undefined)).to.have.length(10)
    for (const wait of waits.filter(wait => wait !== undefined)) expect(wait).to.be.within(240, 300)
    expect(await throttle.begin({ username: newName(), address: newName() })).to.equal(undefined)
  })

  it('refuses an address after a hundred failures with any names, and does not count refused attempts', async () => {
    const throttle = await implementation().open()
    const address = newName()
    await failures(throttle, 100, () => ({ username: newName(), address }))
    const username = newName()
    for (let n = 0; n < 12; n++) expect(await throttle.begin({ username, address })).to.be.within(1, 300)
    expect(await throttle.begin({ username, address: newName() })).to.equal(undefined)
  })

  it('does not count successes, and resets the failures before', async () => {
    const throttle = await implementation().open()
    const [username, address] = [newName(), newName()]
    for (let n = 0; n < 15; n++) {
      const attempts = [
        { username, address },
        { username: newName(), address },
      ]
      for (const attempt of attempts) {
        for (let failed = 0; failed < 8; failed++)
          expect(await throttle.begin({ ...attempt, address: newName() })).to.equal(undefined)
        expect(await throttle.begin(attempt)).to.equal(undefined)
        await throttle.succeed(attempt)
      }
    }
    await failures(throttle, 100, () => ({ username: newName(), address }))
    expect(await throttle.begin({ username, address })).to.be.within(1, 300)
  })

  it('continues to refuse a user while any number of other names is tried', async () => {
    const { open, others } = implementation()
    const throttle = await open()
    const username = newName()
    await failures(throttle, 10, () => ({ username, address: newName() }))
    await failures(throttle, others, () => ({ username: newName(), address: newName() }))
    expect(await throttle.begin({ username, address: newName() })).to.be.within(1, 300)
  })

  it('accepts attempts again after five minutes', async () => {
    const { open, pass } = implementation()
    const throttle = await open()
    const attempt = { username: newName(), address: newName() }
    expect(await failures(throttle, 10, () => attempt)).to.deep.equal(ACCEPTED)
    expect(await throttle.begin(attempt)).to.be.within(1, 300)
    await pass()
    expect(await failures(throttle, 10, () => attempt)).to.deep.equal(ACCEPTED)
    expect(await throttle.begin(attempt)).to.be.within(1, 300)
  })
}

describe('identity: the login throttle in memory', () => {
  let nowMs = 0
  loginThrottleContract(() => ({
    open: async () => createMemoryLoginThrottle(() => nowMs),
    pass: async () => {
      nowMs += 300_000
    },
    others: 10_001,
  }))
})

describe('identity: the login throttle in Postgres', () => {
  let database: Database

  before(async () => {
    const { addresses } = await sharedService()
    database = openDatabase({ connectionString: addresses.postgres })
  })
  after(() => database.close())

  loginThrottleContract(() => ({
    open: () => openDatabaseLoginThrottle(database),
    pass: async () => {
      await database.sql('update issuer_login_failures_v1 set ends_at = now()')
    },
    others: 200,
  }))

  it('counts failures of all instances, and stores no name', async () => {
    const [one, other] = [await openDatabaseLoginThrottle(database), await openDatabaseLoginThrottle(database)]
    const username = `user-${randomUUID()}`
    for (let n = 0; n < 10; n++)
      expect(await (n % 2 === 0 ? one : other).begin({ username, address: `${n}` })).to.equal(undefined)
    expect(await one.begin({ username, address: 'a' })).to.be.within(1, 300)
    expect(await other.begin({ username, address: 'b' })).to.be.within(1, 300)
    const rows = await database.sql<{ fingerprint: string }>('select fingerprint from issuer_login_failures_v1')
    for (const { fingerprint } of rows) expect(fingerprint).to.match(/^[\w-]{43}$/)
  })
})
