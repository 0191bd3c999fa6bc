import { setImmediate as nextLoopTurn } from 'node:timers/promises'
import { expect } from 'chai'
import type { Account } from '../../src/fairness/account.ts'
import { currentAccount, workFor } from '../../src/fairness/currentAccount.ts'
import { createLoopTime } from '../../src/fairness/loopTime.ts'
import { createManualClock } from '../support/manualClock.ts'
import { rejectionOf } from '../support/rejection.ts'

const PIECES = 200
const PIECE_MS = 0.25
/** As many as a millisecond has room for. */
const PIECES_PER_TURN = 4

const of = (tenant: string, caller = 'only'): Account => ({ tenant, caller })
const never = new AbortController().signal

describe('the time of the event loop', () => {
  let ran: string[]
  let nowMs: number
  let slept: number[]
  let inTurn: ReturnType<typeof createLoopTime>

  beforeEach(() => {
    ran = []
    nowMs = createManualClock().monotonicMs()
    slept = []
    inTurn = createLoopTime({
      monotonicMs: () => nowMs,
      sleep: async timeMs => void slept.push(timeMs),
    })
  })

  const add = ({ tenant, caller }: Account, costMs = PIECE_MS, signal = never): Promise<unknown> =>
    inTurn(
      { tenant, caller },
      () => {
        nowMs += costMs
        ran.push(tenant)
      },
      signal,
    )
  const addMany = (tenant: string): Promise<unknown>[] =>
    Array.from({ length: PIECES }, (_, n) => add(of(tenant, `caller-${n % 10}`)))

  it('is left to others after the pieces of about a millisecond', async () => {
    const all = Promise.all(addMany('greedy'))
    const turns: number[] = []
    for (let before = 0; ran.length < PIECES; before = ran.length) {
      await nextLoopTurn()
      turns.push(ran.length - before)
    }
    expect(Math.max(...turns)).to.equal(PIECES_PER_TURN)
    await all
  })

  it('is left to others for several times as long beside other tenants', async () => {
    const account = { ...of('greedy'), isAlone: () => false }
    await Promise.all(workFor(account, () => addMany('greedy')))
    expect(slept).to.deep.equal(Array(PIECES / PIECES_PER_TURN).fill(8))
  })

  it('is the turn of a tenant with one piece before the many of another', async () => {
    const greedy = addMany('greedy')
    await nextLoopTurn()
    const before = ran.length
    await add(of('honest'))
    expect(ran.indexOf('honest') - before).to.be.at.most(1)
    await Promise.all(greedy)
  })

  it('is charged by time: a tenant with long pieces has fewer', async () => {
    const all = Array.from({ length: 40 }, () => [add(of('long'), 4 * PIECE_MS), add(of('short'))]).flat()
    while (ran.length < 40) await nextLoopTurn()
    expect(ran.filter(tenant => tenant === 'short').length).to.be.within(28, 36)
    await Promise.all(all)
  })

  it('is not used for a piece whose signal aborts while it waits', async () => {
    const abort = new AbortController()
    const piece = add(of('gone'), PIECE_MS, abort.signal)
    abort.abort()
    expect(await piece).to.equal(undefined)
    await add(of('other'))
    expect(await add(of('gone'), PIECE_MS, abort.signal)).to.equal(undefined)
    expect(ran).to.deep.equal(['other'])
  })

  it('is used in the account of the piece, whose error its caller gets', async () => {
    expect(await inTurn(of('one'), currentAccount, never)).to.deep.equal(of('one'))
    const failing = inTurn(
      of('one'),
      () => {
        throw new Error('planted')
      },
      never,
    )
    expect(String(await rejectionOf(failing))).to.include('planted')
  })
})
