import { expect } from 'chai'
import { holdsInOneOf } from '../support/comparedTimes.ts'
import { measureBesideAttackers, median, quantile } from '../support/besideAttackers.ts'

/** A short form of the soak test, which also measures the p99 and the memory. */
const TURNS = { rounds: 3, roundMs: 2_000, settleMs: 500, recoveryMs: 0 }
const BULK = 0.9
/** Medians of alternating phases are compared, because the machine may have other load. */
const TIMES_MAX = 6

describe('an honest caller beside two attackers', () => {
  it('is served without a 503 or a 429, in a time of the same order as alone', async () => {
    const reports: object[] = []
    await holdsInOneOf(async () => {
      const { rounds, statuses, attackers } = await measureBesideAttackers(TURNS)
      reports.push(...attackers)
      const ratios = rounds.map(({ alone, attacked }) => quantile(attacked, BULK) / quantile(alone, BULK))
      const summary = [...ratios.map(ratio => ratio.toFixed(1)), JSON.stringify(statuses), JSON.stringify(attackers)]
      process.stdout.write(`      ${summary.join(' ')}\n`)
      // A service that gets no processor time sheds load too, with 503.
      expect(Object.keys(statuses), 'statuses of the honest caller').to.deep.equal(['200', '201'])
      expect(median(ratios), `${ratios.map(ratio => ratio.toFixed(1)).join(' ')} times`).to.be.below(TIMES_MAX)
    })
    for (const answers of reports)
      expect(answers, 'statuses of an attacker').to.include.keys('400', '401', '403', '429')
  })
})
