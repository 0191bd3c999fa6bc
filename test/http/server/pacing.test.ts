import { expect } from 'chai'
import { createPace } from '../../../src/http/server/pacing.ts'
import { clientOf } from '../../support/client.ts'
import { sharedService } from '../../support/service.ts'
import { caller, startVariant } from '../../support/serviceVariants.ts'

/** 100 a second. */
const LIMIT = { requests: 6_000, windowSeconds: 60 }
const ACCOUNTS_MAX = 10_000

describe('the pacing of a caller', () => {
  const start = (limit = LIMIT) => {
    let nowMs = 0
    const slept: number[] = []
    const clock = { monotonicMs: () => nowMs, sleep: async (timeMs: number) => void slept.push(timeMs) }
    return { slept, pass: (timeMs: number) => void (nowMs += timeMs), pace: createPace(limit, clock) }
  }
  const one = { name: 'one', waitMaxMs: 5_000 }

  it('does not delay requests within the rate of the limit, nor a small burst', async () => {
    const { pace, slept, pass } = start()
    for (let n = 0; n < 500; n++) {
      await pace.admit(one)
      pass(10)
    }
    for (let n = 0; n < 10; n++) await pace.admit(one)
    expect(slept).to.deep.equal([])
    expect(pace.isOverPace()).to.equal(false)
  })

  it('serializes requests beyond a small burst, and delays them beyond half a second of the rate', async () => {
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

  it('delays no request longer than its account permits', async () => {
    const { pace, slept, pass } = start()
    for (let n = 0; n < 5_000; n++) await pace.admit(one)
    expect(Math.max(...slept)).to.equal(5_000)
    pass(5_600)
    slept.length = 0
    await pace.admit(one)
    expect(slept).to.deep.equal([])
  })

  it('is separate for each caller', async () => {
    const { pace, slept } = start()
    for (let n = 0; n < 500; n++) await pace.admit(one)
    slept.length = 0
    await pace.admit({ ...one, name: 'another' })
    expect(slept).to.deep.equal([])
  })

  it('is remembered for the last ten thousand callers only', async () => {
    const { pace } = start()
    for (let n = 0; n < 50; n++) await pace.admit(one)
    const others = async (count: number): Promise<void> => {
      for (let n = 0; n < count; n++) await pace.admit({ ...one, name: `caller ${n}` })
    }
    await others(ACCOUNTS_MAX - 1)
    expect(pace.isOverPace(one)).to.equal(true)
    await others(ACCOUNTS_MAX)
    expect(pace.isOverPace(one)).to.equal(false)
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

  it('refuses callers above their pace, and serves others', async () => {
    expect(await statusOf(['caller'])).to.equal(503)
    expect(await statusOf(['refused', 'public'])).to.equal(200)
    expect(await statusOf(['public'], '/openapi.json')).to.equal(503)
    expect(await statusOf(['caller'], '/openapi.json')).to.equal(200)
  })

  it('refuses all callers when none is above its pace', async () => {
    expect(await statusOf([])).to.equal(503)
    expect((await clientOf((await sharedService()).api).get('/livez')).status).to.equal(200)
  })
})
