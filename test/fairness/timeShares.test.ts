import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect } from 'chai'
import { type Account, strangerAccount } from '../../src/fairness/account.ts'
import { type EndTurn, HELD_UNTIL_DONE, Turns } from '../../src/fairness/turns.ts'
import { createManualClock } from '../support/manualClock.ts'

const QUIET: Account = { tenant: 'quiet', caller: 'only' }
const busy = (n: number): Account => ({ tenant: 'busy', caller: `caller-${n}` })
const TURNS = 16

type Piece = { readonly end: EndTurn; leftMs: number }

/**
 * Runs work that shares one processor, which takes `costMs` alone. The busy account always has work waiting. Resolves to
 * the pieces that it ended in `timeMs`, and to the most that were in progress at once in the second half of that time.
 */
const run = async ({
  costMs,
  timeMs = 1_000,
  account = busy,
  isAlone = false,
}: {
  readonly costMs: number
  readonly timeMs?: number
  readonly account?: (n: number) => Account
  readonly isAlone?: boolean
}): Promise<{ readonly ended: number; readonly mostLate: number }> => {
  const clock = createManualClock()
  const turns = new Turns({ ...HELD_UNTIL_DONE, turns: () => TURNS, timeShareWhenContended: 1 / 2 }, clock)
  const pieces = new Set<Piece>()
  let [ended, mostLate, waiting] = [0, 0, 0]
  const add = async (n: number): Promise<void> => {
    waiting++
    const end = await turns.enter(account(n))
    waiting--
    pieces.add({ end, leftMs: costMs })
  }
  for (let passedMs = 0, n = 0; passedMs < timeMs; passedMs++) {
    if (!isAlone && passedMs % 100 === 0) turns.tryEnter(QUIET)?.()
    while (waiting < TURNS) void add(n++)
    await nextTurn()
    if (passedMs > timeMs / 2) mostLate = Math.max(mostLate, pieces.size)
    const inProgress = [...pieces]
    await clock.pass(1)
    for (const piece of inProgress) {
      piece.leftMs -= 1 / inProgress.length
      if (piece.leftMs > 1e-9) continue
      pieces.delete(piece)
      piece.end()
      ended++
    }
  }
  return { ended, mostLate }
}

describe('the time that the work of a tenant takes', () => {
  for (const costMs of [1, 2, 5, 20])
    it(`is half of all time beside another tenant, when a piece of work takes ${costMs} ms`, async () => {
      const { ended } = await run({ costMs, timeMs: 4_000 })
      expect((ended * costMs) / 4_000).to.be.within(0.4, 0.56)
    })

  it('is all time for a tenant that is alone', async () => {
    const { ended } = await run({ costMs: 5, isAlone: true })
    expect(ended * 5).to.be.at.least(950)
  })

  it('is divided by the number of callers, not multiplied', async () => {
    const [one, many] = [await run({ costMs: 5, account: () => busy(0) }), await run({ costMs: 5 })]
    expect(many.ended).to.be.closeTo(one.ended, 5)
  })

  it('counts fourfold for strangers', async () => {
    const { ended } = await run({ costMs: 2, account: n => strangerAccount(`192.0.2.${n}`) })
    expect((ended * 2) / 1_000).to.be.within(0.1, 0.25)
  })

  it('is expected by what its work took before: of expensive work a single piece is in progress, of cheap work several', async () => {
    expect((await run({ costMs: 20, timeMs: 3_000 })).mostLate).to.equal(1)
    expect((await run({ costMs: 1, timeMs: 3_000 })).mostLate).to.be.greaterThan(2)
  })

  it('is that in which the processor worked: work that waits for a slow store costs nothing', async () => {
    const clock = createManualClock()
    const turns = new Turns({ ...HELD_UNTIL_DONE, turns: () => TURNS, timeShareWhenContended: 1 / 2 }, clock, () => 0)
    turns.tryEnter(QUIET)?.()
    for (let n = 0; n < 20; n++) {
      const end = turns.tryEnter(busy(n))
      await clock.pass(100)
      end?.()
      turns.tryEnter(QUIET)?.()
    }
    expect([1, 2, 3].map(n => typeof turns.tryEnter(busy(n)))).to.deep.equal(['function', 'function', 'function'])
  })

  it('includes what the work costs stores and feeds later', async () => {
    const clock = createManualClock()
    const turns = new Turns({ ...HELD_UNTIL_DONE, turns: () => TURNS, timeShareWhenContended: 1 / 2 }, clock)
    turns.tryEnter(QUIET)?.()
    turns.tryEnter({ ...busy(0), laterMs: 100 })?.()
    await clock.pass(40)
    expect(turns.tryEnter(busy(0)), 'of 200 ms, 150 may be used in advance').to.equal(undefined)
    await clock.pass(15)
    expect(turns.tryEnter(busy(0))).to.not.equal(undefined)
  })

  it('gives no debt to a tenant for what it used while it was alone', async () => {
    const clock = createManualClock()
    const turns = new Turns({ ...HELD_UNTIL_DONE, turns: () => TURNS, timeShareWhenContended: 1 / 2 }, clock)
    for (let n = 0; n < 100; n++) {
      const end = turns.tryEnter(busy(n))
      await clock.pass(50)
      end?.()
    }
    turns.tryEnter(QUIET)?.()
    expect(turns.tryEnter(busy(0))).to.not.equal(undefined)
  })
})
