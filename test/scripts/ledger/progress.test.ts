import { PassThrough } from 'node:stream'
import { expect } from 'chai'
import { commandLine } from '../../../scripts/ledger/interruption.ts'
import { durationOf, type Extent, progressFor } from '../../../scripts/ledger/progress.ts'

/** A stream with all that was written, and a clock that the test moves. */
const outputOf = ({ isTTY }: { isTTY: boolean }) => {
  const clock = { nowMs: 0 }
  let written = ''
  const stream = Object.assign(new PassThrough(), { isTTY, columns: 200 })
  stream.on('data', (chunk: Buffer) => {
    written += chunk.toString()
  })
  return { clock, text: () => written, output: { stream, nowMs: () => clock.nowMs } }
}

describe('the progress of a long command', () => {
  const begin = (extent: Extent = {}, { isTTY = false, json = false } = {}) => {
    const { clock, text, output } = outputOf({ isTTY })
    return { clock, text, progress: progressFor({ json }, output)('payments_v1', 'events', extent) }
  }

  it('is a plain line every two seconds in a pipe, with rate and remaining time', () => {
    const { clock, text, progress } = begin({ total: 4_000 })
    clock.nowMs = 1_999
    progress.advance(900)
    expect(text()).to.equal('')
    clock.nowMs = 2_000
    progress.advance(100)
    progress.advance(100)
    expect(text()).to.equal('payments_v1: 1,000 of 4,000 events (25 %), 500/s, 6 s left\n')
    clock.nowMs = 8_000
    progress.update(4_000)
    progress.end()
    const last = 'payments_v1: 4,000 of 4,000 events (100 %), 500/s'
    expect(text().split('\n').slice(1)).to.deep.equal([last, last, ''])
  })

  it('has no line for a command that ends at once, and none after its end', () => {
    const { clock, text, progress } = begin()
    progress.advance(10)
    progress.end()
    clock.nowMs = 60_000
    progress.advance(10)
    progress.end()
    expect(text()).to.equal('')
  })

  it('does without a total, and learns it later', () => {
    const { clock, text, progress } = begin()
    clock.nowMs = 10_000
    progress.advance(12_345)
    clock.nowMs = 20_000
    progress.update(20_000, 30_000)
    expect(text()).to.equal(
      'payments_v1: 12,345 events, 1,235/s\npayments_v1: 20,000 of 30,000 events (66 %), 1,000/s, 10 s left\n',
    )
  })

  it('does not count as its rate the part that an interrupted run did', () => {
    const { clock, text, progress } = begin({ total: 2_000, done: 1_000 })
    clock.nowMs = 2_000
    progress.advance(200)
    expect(text()).to.equal('payments_v1: 1,200 of 2,000 events (60 %), 100/s, 8 s left\n')
  })

  it('is a bar on a terminal, which is complete at the end and leaves the cursor on a new line', () => {
    const { text, progress } = begin({ total: 4 }, { isTTY: true })
    progress.advance(2)
    progress.update(4)
    progress.end()
    expect(text()).to.include(`${'░'.repeat(24)} payments_v1: 0 of 4 events (0 %)`)
    expect(text()).to.include(`${'█'.repeat(24)} payments_v1: 4 of 4 events (100 %)`)
    expect(text()).to.match(/\n$/)
  })

  it('is JSON lines with --json, also on a terminal', () => {
    const { clock, text, progress } = begin({ total: 4 }, { isTTY: true, json: true })
    clock.nowMs = 2_000
    progress.advance(2)
    expect(JSON.parse(text())).to.deep.equal({
      progress: { work: 'payments_v1', unit: 'events', done: 2, total: 4, rate: 1, eta_seconds: 2 },
    })
    progress.end()
  })

  it('shows control characters of a name as escapes', () => {
    const { clock, output, text } = outputOf({ isTTY: false })
    const progress = progressFor({ json: false }, output)('\u001b[2Jevil', 'events')
    clock.nowMs = 2_000
    progress.update(0)
    expect(text()).to.equal('\\u001b[2Jevil: 0 events\n')
  })

  it('names times as people do', () => {
    expect([0.2, 59.5, 61, 3_599, 7_500].map(durationOf)).to.deep.equal([
      '1 s',
      '1 min 0 s',
      '1 min 1 s',
      '59 min 59 s',
      '2 h 5 min',
    ])
  })
})

describe('the command that goes on', () => {
  const before = process.env['LEDGER_DATA_DIR']
  afterEach(() => {
    if (before === undefined) delete process.env['LEDGER_DATA_DIR']
    else process.env['LEDGER_DATA_DIR'] = before
  })

  it('can be pasted into a shell, whatever its words are', () => {
    delete process.env['LEDGER_DATA_DIR']
    expect(commandLine(['consume', '--copy', "an 'old' copy", '--tenant', 'a$(b)'])).to.equal(
      `npm run -s ledger -- consume --copy 'an '\\''old'\\'' copy' --tenant 'a$(b)'`,
    )
  })

  it('names the data directory if one is set', () => {
    process.env['LEDGER_DATA_DIR'] = '/data of/one'
    expect(commandLine(['manifest'])).to.equal("LEDGER_DATA_DIR='/data of/one' npm run -s ledger -- manifest")
  })
})
