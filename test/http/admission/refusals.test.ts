import { expect } from 'chai'
import { createRefusals, type Refusals } from '../../../src/http/admission/refusals.ts'
import { createManualClock } from '../../support/manualClock.ts'

const AFTER_MS = 2_000
const never = new AbortController().signal

describe('a refusal', () => {
  let clock: ReturnType<typeof createManualClock>
  let refusals: Refusals
  let sent: string[]
  beforeEach(() => {
    clock = createManualClock()
    refusals = createRefusals(clock)
    sent = []
  })
  const refuse = (caller: string, { tenant = 'acme', afterMs = AFTER_MS } = {}): void =>
    void refusals
      .hold({ tenant, caller }, afterMs, never)
      .then(() => sent.push(`${tenant} ${caller} ${clock.monotonicMs()}`))

  it('is sent at once, but the next ones to the same caller only when its Retry-After is over, one after the other', async () => {
    for (let times = 0; times < 3; times += 1) refuse('hasty')
    await clock.pass(AFTER_MS - 1)
    expect(sent).to.deep.equal(['acme hasty 0'])
    await clock.pass(11)
    expect(sent.slice(1)).to.deep.equal(['acme hasty 2000', 'acme hasty 2010'])
  })

  it('is sent at once to a caller who waited as long as it was told, and to others', async () => {
    refuse('patient')
    await clock.pass(AFTER_MS)
    refuse('patient')
    refuse('other')
    refuse('patient', { tenant: 'another' })
    await clock.pass(0)
    expect(sent).to.deep.equal(['acme patient 0', 'acme patient 2000', 'acme other 2000', 'another patient 2000'])
  })

  it('is held for five seconds at most', async () => {
    for (let times = 0; times < 2; times += 1) refuse('hasty', { afterMs: 60_000 })
    await clock.pass(5_000)
    expect(sent).to.deep.equal(['acme hasty 0', 'acme hasty 5000'])
  })

  it('is sent ten milliseconds after the one before it to the same tenant, but within five more seconds', async () => {
    for (let times = 0; times < 1_002; times += 1) refuse(`caller ${times % 2}`)
    refuse('elsewhere', { tenant: 'another' })
    refuse('elsewhere', { tenant: 'another' })
    await clock.pass(AFTER_MS + 5_000)
    const sentAt = sent.filter(line => line.startsWith('acme')).map(line => Number(line.split(' ').at(-1)))
    const slots = Array.from({ length: 500 }, (_, slot) => AFTER_MS + slot * 10)
    expect(sentAt).to.deep.equal([0, 0, ...slots.flatMap(ms => [ms, ms])])
    expect(sent.filter(line => line.startsWith('another'))).to.deep.equal([
      'another elsewhere 0',
      `another elsewhere ${AFTER_MS}`,
    ])
  })

  it('is held no longer for a caller who has left', async () => {
    const gone = new AbortController()
    const signals: (AbortSignal | undefined)[] = []
    const { hold } = createRefusals({
      ...clock,
      sleep: async (_timeMs, signal) => void signals.push(signal),
    })
    for (let times = 0; times < 2; times += 1) await hold({ tenant: 'acme', caller: 'hasty' }, AFTER_MS, gone.signal)
    expect(signals).to.deep.equal([gone.signal])
  })
})
