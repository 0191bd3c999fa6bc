import { expect } from 'chai'
import { createHistogram, joinedTexts, metricsText, observe } from '../../src/lib/metrics.ts'

/** The lines of one metric in the text of all of this process. */
const linesOf = async (name: string, own = {}): Promise<string[]> =>
  (await metricsText(own)).split('\n').filter(line => line.replace(/^# (HELP|TYPE) /, '').startsWith(name))

describe('the text of metrics', () => {
  it('has cumulative buckets, sum and count of each series of a histogram, with the unit in the name', async () => {
    const options = { name: 'test.duration', unit: 's', help: 'A duration.', boundaries: [0.1, 1] } as const
    const histogram = createHistogram(options)
    for (const value of [0.05, 0.1, 0.5, 7]) histogram.record(value, { route: 'GET /a' })
    histogram.record(0.5, { route: 'GET /b' })
    expect(await linesOf('test_duration')).to.deep.equal([
      '# HELP test_duration_seconds A duration.',
      '# TYPE test_duration_seconds histogram',
      'test_duration_seconds_bucket{route="GET /a",le="0.1"} 2',
      'test_duration_seconds_bucket{route="GET /a",le="1"} 3',
      'test_duration_seconds_bucket{route="GET /a",le="+Inf"} 4',
      'test_duration_seconds_sum{route="GET /a"} 7.65',
      'test_duration_seconds_count{route="GET /a"} 4',
      'test_duration_seconds_bucket{route="GET /b",le="0.1"} 0',
      'test_duration_seconds_bucket{route="GET /b",le="1"} 1',
      'test_duration_seconds_bucket{route="GET /b",le="+Inf"} 1',
      'test_duration_seconds_sum{route="GET /b"} 0.5',
      'test_duration_seconds_count{route="GET /b"} 1',
    ])
    createHistogram(options).record(0.5, { route: 'GET /b' })
    expect(await linesOf('test_duration_seconds_count{route="GET /b"}')).to.deep.equal([
      'test_duration_seconds_count{route="GET /b"} 2',
    ])
  })

  it('has observed values with escaped labels, until they are removed', async () => {
    const remove = observe({
      name: 'test.observed',
      unit: '',
      type: 'counter',
      help: 'A count.',
      read: async () => [{ labels: { state: 'a"b\\c\nd' }, value: 3 }],
    })
    expect(await linesOf('test_observed', { process: 'api-1' })).to.deep.equal([
      '# HELP test_observed_total A count.',
      '# TYPE test_observed_total counter',
      'test_observed_total{process="api-1",state="a\\"b\\\\c\\nd"} 3',
    ])
    remove()
    expect(await linesOf('test_observed')).to.deep.equal([])
  })

  for (const [fault, read] of Object.entries({
    'cannot be read': () => Promise.reject(new Error('no answer')),
    'is not read in time': () => new Promise<never>(() => undefined),
  }))
    it(`leaves out a metric that ${fault}, and has the others`, async () => {
      const failing = observe({ name: 'test.failing', unit: '', help: 'Fails.', read })
      const other = observe({ name: 'test.other', unit: '', help: 'Other.', read: () => [{ labels: {}, value: 1 }] })
      const text = await metricsText({})
      expect(text).to.not.include('test_failing')
      expect(text.split('\n')).to.include('test_other 1')
      failing()
      other()
    })

  it('joins the texts of several processes under one head for each metric', () => {
    const head = '# HELP a A.\n# TYPE a gauge\n'
    const other = '# HELP b B.\n# TYPE b counter\n'
    expect(joinedTexts([`${head}a{process="x"} 1\n${other}b 2\n`, '', `${head}a{process="y"} 3\na 4\n`])).to.equal(
      `${head}a{process="x"} 1\na{process="y"} 3\na 4\n${other}b 2\n`,
    )
  })
})
