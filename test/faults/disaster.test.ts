import { expect } from 'chai'
import { eventually } from '../support/eventually.ts'
import {
  expectPaidOnce,
  expectReplays,
  headsIn,
  openStage,
  report,
  sendAgain,
  type Stage,
  stopwatch,
  TENANT,
} from '../support/disasterStage.ts'

/** The drills of DISASTER.md for lost stores: its commands, in its order. Copies of databases stand for restored stores. */

describe('the drills for lost stores', () => {
  let stage: Stage
  before(async () => {
    stage = await openStage()
  })
  afterEach(() => stage.stop())
  after(() => stage?.close())

  /** Accepts the loss. Resolves to it, in the words of the command. */
  const accept = async (): Promise<string> =>
    /of \d+ signed events the first \d+ are kept/.exec(await stage.succeed('accept'))?.[0] ?? expect.fail('No loss.')
  const checksOf = async (): Promise<Record<string, string>> => {
    const response = await fetch(`${stage.service().api}/readyz`)
    expect(response.status).to.equal(200)
    return ((await response.json()) as { checks: Record<string, string> }).checks
  }

  it('1: the log was restored to an earlier moment', async () => {
    await stage.restore('one', { log: 'backup', tables: 'now' })
    expect(await stage.refusal()).to.include('The tables in Postgres are of a later state of the log')
    const { output } = await stage.follow('notice')
    expect(output).to.match(/^FINDING +log +The tables in Postgres are of a later state/m)
    const elapsed = stopwatch()
    await stage.succeed('reset')
    const client = await stage.start()
    // The log answers for single resources before any list is complete.
    expect((await client.get(`/payments/${stage.kept[0]?.answer.body.id}`)).status).to.equal(200)
    const cursor = await client.get(`/events?cursor=${stage.cursor}`)
    expect([cursor.status, cursor.body.code]).to.deep.equal([400, 'cursor_expired'])
    expect(cursor.body.detail).to.match(/^The ledger was restored from a backup/)
    const rpo = await accept()
    await stage.check()
    report('1, the log', `RPO ${rpo}, RTO ${elapsed()}`)
    await expectPaidOnce(client, stage.kept)
    await expectPaidOnce(client, await sendAgain(client, stage))
    await stage.check()
    expect((await headsIn(stage.dataDir())).at(-1)).to.include({ generation: 2 })
  })

  for (const tables of ['backup', 'empty'] as const)
    it(`2: Postgres alone was ${tables === 'empty' ? 'lost' : 'restored'}`, async () => {
      await stage.restore(`two-${tables}`, { log: 'now', tables })
      const elapsed = stopwatch()
      const client = await stage.start()
      // Lists catch up meanwhile.
      await eventually(async () => {
        await stage.succeed('lost', { TENANT })
        return (await stage.follow('check')).code === 0
      })
      report(`2, Postgres (${tables})`, `RPO 0 events, RTO ${elapsed()}`)
      const all = [...stage.kept, ...stage.lost]
      await expectPaidOnce(client, all)
      await expectReplays(client, all.slice(-5))
      await expectPaidOnce(client, all)
      const [before, after] = [stage.kept[0], stage.lost[0]]
      const referenceOf = async (id: string) => (await client.get(`/payments/${id}`)).body.reference
      expect(await referenceOf(after?.answer.body.id)).to.equal(null)
      const kept = tables === 'backup' ? before?.request['reference'] : null
      expect(await referenceOf(before?.answer.body.id)).to.equal(kept)
    })

  it('3: both were restored from one backup, which only the signed heads show', async () => {
    await stage.restore('three', { log: 'backup', tables: 'backup' })
    const elapsed = stopwatch()
    const client = await stage.start()
    const shown = /^FINDING +failed feeds +sealing, .*The log has \d+ events/m
    await eventually(async () => shown.test((await stage.follow('notice')).output))
    await eventually(async () => (await checksOf())['sealing'] === 'stopped')
    const { code, output } = await stage.follow('loss')
    expect(code).to.equal(1)
    expect(output).to.match(/^FINDING +evidence +truncated: The tree in Postgres has \d+ events/m)
    const rpo = await accept()
    await stage.check()
    report('3, both', `RPO ${rpo}, RTO ${elapsed()}`)
    await expectPaidOnce(client, await sendAgain(client, stage))
    await stage.check()
  })
})
