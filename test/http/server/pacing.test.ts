import { expect } from 'chai'
import { createPace } from '../../../src/http/server/pacing.ts'
import { clientOf } from '../../support/client.ts'
import { sharedService } from '../../support/service.ts'
import { caller, startVariant } from '../../support/variants.ts'

/** 100 a second. */
const LIMIT = { requests: 6_000, windowSeconds: 60 }

describe('the pace of a caller', () => {
  const start = (limit = LIMIT) => {
    let nowMs = 0
    const slept: number[] = []
    const clock = { monotonicMs: () => nowMs, sleep: async (timeMs: number) => void slept.push(timeMs) }
    return { slept, pass: (timeMs: number) => void (nowMs += timeMs), pace: createPace(limit, clock) }
  }
  const one = { name: 'one', waitMaxMs: 5_000 }

  it('is free for who asks no faster than the limit allows, and for a handful at once', async () => {
    const { pace, slept, pass } = start()
    for (let n = 0; n < 500; n++) {
      await pace.admit(one)
      pass(10)
    }
    for (let n = 0; n < 10; n++) await pace.admit(one)
    expect(slept).to.deep.equal([])
    expect(pace.isOverPace()).to.equal(false)
  })

  it('is one after the other beyond a handful, and the pace of the limit beyond half a second’s worth', async () => {
    const { pace, slept } = start()
    for (let n = 0; n < 50; n++) await pace.admit(one)
    expect(new Set(slept)).to.deep.equal(new Set([1]))
    slept.length = 0
    for (let n = 0; n < 5; n++) await pace.admit(one)
    expect(slept.filter(ms => ms > 1)).to.deep.equal([10, 20, 30, 40])
    expect([pace.isOverPace(one), pace.isOverPace({ ...one, name: 'two' }), pace.isOverPace()]).to.deep.equal([
      true,
      false,
      true,
    ])
  })

  it('makes nobody wait longer than the account allows, however many have come', async () => {
    const { pace, slept, pass } = start()
    for (let n = 0; n < 5_000; n++) await pace.admit(one)
    expect(Math.max(...slept)).to.equal(5_000)
    pass(5_600)
    slept.length = 0
    await pace.admit(one)
    expect(slept).to.deep.equal([])
  })

  it('is its own', async () => {
    const { pace, slept } = start()
    for (let n = 0; n < 500; n++) await pace.admit(one)
    slept.length = 0
    await pace.admit({ ...one, name: 'another' })
    expect(slept).to.deep.equal([])
  })

  it('forgets callers that have not asked for a while', async () => {
    const { pace, pass } = start()
    for (let n = 0; n < 30_000; n++) {
      await pace.admit({ ...one, name: `caller ${n}` })
      if (n % 1_000 === 0) pass(100)
    }
    expect(pace.isOverPace()).to.equal(false)
  })
})

describe('an overloaded service', () => {
  const statusOf = async (busy: readonly string[], path = '/orders'): Promise<number> => {
    const pace = {
      admit: async () => undefined,
      isOverPace: (account?: { name: string }) =>
        account === undefined ? busy.length > 0 : busy.some(name => account.name.startsWith(name)),
    }
    const authenticate = async () => caller
    const variant = await startVariant(await sharedService(), {
      pace,
      authenticate,
      loadShedding: { isOverloaded: () => true },
    })
    try {
      return (await fetch(`${variant.api}${path}`)).status
    } finally {
      await variant.close()
    }
  }

  it('refuses those who ask for more than their pace, and serves the others', async () => {
    expect(await statusOf(['caller'])).to.equal(503)
    expect(await statusOf(['refused', 'open'])).to.equal(200)
    expect(await statusOf(['open'], '/openapi.json')).to.equal(503)
    expect(await statusOf(['caller'], '/openapi.json')).to.equal(200)
  })

  it('refuses everybody where nobody does', async () => {
    expect(await statusOf([])).to.equal(503)
    expect((await clientOf((await sharedService()).api).get('/livez')).status).to.equal(200)
  })
})
