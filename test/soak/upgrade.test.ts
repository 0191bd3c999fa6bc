import { expect } from 'chai'
import { run } from '../scripts/cli.ts'
import { commitOf, lastRelease } from '../support/builds.ts'

/** Beyond what any of the cases takes on a machine that other programs use. */
const MAX_MS = 1_800_000
/** At the end of the first one the log is restored, and its tables take longer than those of a short run. */
const FROM_SEED = 7
const SEEDS = 2

describe('an upgrade from the last release', function () {
  this.timeout(MAX_MS)
  const say = (text: string): void => {
    for (const line of text.trimEnd().split('\n')) process.stdout.write(`      ${line}\n`)
  }
  let from: string | undefined
  before(async () => {
    try {
      from = await commitOf(await lastRelease())
    } catch (error) {
      say(`left out, because there is no earlier build here: ${String(error)}`)
    }
  })

  it('is rehearsed forward, back, half way and forward, with the real servers', async () => {
    if (from === undefined) return
    const { code, stdout, stderr } = await run('../test/upgrade/main.ts', ['--from', from, '--half-way', '20s'], {})
    say(stdout)
    expect(code, stderr).to.equal(0)
    expect(stdout).to.include('nothing lost, nothing doubled')
  })

  it('keeps every promise in an hour of virtual time half way', async () => {
    if (from === undefined) return
    const args = ['--seeds', String(SEEDS), '--from', String(FROM_SEED), '--beside', from, '--json']
    const { code, stdout, stderr } = await run('../test/simulation/main.ts', args, {})
    expect(code, stderr).to.equal(0)
    const { failed, side_by_side_seconds: seconds } = JSON.parse(stdout)
    say(`${SEEDS} seeds beside ${from}, for at least ${Math.floor(seconds)} virtual seconds side by side`)
    expect(failed).to.deep.equal([])
    expect(seconds).to.be.at.least(3_600)
  })
})
