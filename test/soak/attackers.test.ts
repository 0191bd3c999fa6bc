import { expect } from 'chai'
import { measureBesideAttackers, quantile } from '../support/besideAttackers.ts'

const TURNS = { rounds: 12, roundMs: 10_000, settleMs: 1_000 }
const FRACTION = 0.99
const TIMES_MAX = 2

describe('a normal client beside two attackers, for a long time', function () {
  this.timeout(600_000)

  it(`has a p99 within ${TIMES_MAX} × its own without them, and gets no 503 and no 429`, async () => {
    const { rounds, statuses, attackers } = await measureBesideAttackers(TURNS)
    const alone = quantile(
      rounds.flatMap(round => round.alone),
      FRACTION,
    )
    const attacked = quantile(
      rounds.flatMap(round => round.attacked),
      FRACTION,
    )
    const summary = `p99 ${alone.toFixed(1)} ms alone, ${attacked.toFixed(1)} ms attacked`
    process.stdout.write(`      ${summary} ${JSON.stringify(statuses)} ${JSON.stringify(attackers)}\n`)
    expect(Object.keys(statuses), 'statuses').to.deep.equal(['200', '201'])
    expect(attacked / alone, summary).to.be.below(TIMES_MAX)
  })
})
