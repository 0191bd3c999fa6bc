import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { type Attempt, createLoginThrottle, type LoginThrottle } from '../../src/embedded/issuer/loginThrottle.ts'

const OTHERS = 10_001

describe('identity: the login throttle', () => {
  let nowMs: number
  let throttle: LoginThrottle
  beforeEach(() => {
    nowMs = 0
    throttle = createLoginThrottle(() => nowMs)
  })

  const newName = (): string => `user-${randomUUID()}`
  /** Failed attempts; the seconds that each has to wait, undefined for those that are accepted. */
  const failures = (times: number, attempt: () => Attempt) =>
    Array.from({ length: times }, () => throttle.begin(attempt()))
  const ACCEPTED = Array.from({ length: 10 }, () => undefined)

  it('refuses a user after ten failures and no other user', () => {
    const username = newName()
    const waits = failures(20, () => ({ username, address: newName() }))
    expect(waits.filter(wait => wait === undefined)).to.have.length(10)
    for (const wait of waits.filter(wait => wait !== undefined)) expect(wait).to.be.within(240, 300)
    expect(throttle.begin({ username: newName(), address: newName() })).to.equal(undefined)
  })

  it('refuses an address after a hundred failures with any names, and does not count refused attempts', () => {
    const address = newName()
    failures(100, () => ({ username: newName(), address }))
    const username = newName()
    for (let n = 0; n < 12; n++) expect(throttle.begin({ username, address })).to.be.within(1, 300)
    expect(throttle.begin({ username, address: newName() })).to.equal(undefined)
  })

  it('does not count successes, and resets the failures before', () => {
    const [username, address] = [newName(), newName()]
    for (let n = 0; n < 15; n++) {
      const attempts = [
        { username, address },
        { username: newName(), address },
      ]
      for (const attempt of attempts) {
        for (let failed = 0; failed < 8; failed++)
          expect(throttle.begin({ ...attempt, address: newName() })).to.equal(undefined)
        expect(throttle.begin(attempt)).to.equal(undefined)
        throttle.succeed(attempt)
      }
    }
    failures(100, () => ({ username: newName(), address }))
    expect(throttle.begin({ username, address })).to.be.within(1, 300)
  })

  it('continues to refuse a user while any number of other names is tried', () => {
    const username = newName()
    failures(10, () => ({ username, address: newName() }))
    failures(OTHERS, () => ({ username: newName(), address: newName() }))
    expect(throttle.begin({ username, address: newName() })).to.be.within(1, 300)
  })

  it('accepts attempts again after five minutes', () => {
    const attempt = { username: newName(), address: newName() }
    expect(failures(10, () => attempt)).to.deep.equal(ACCEPTED)
    expect(throttle.begin(attempt)).to.be.within(1, 300)
    nowMs += 300_000
    expect(failures(10, () => attempt)).to.deep.equal(ACCEPTED)
    expect(throttle.begin(attempt)).to.be.within(1, 300)
  })
})
