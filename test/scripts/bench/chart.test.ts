import { expect } from 'chai'
import { type Chart, seriesOf, svgOf } from '../../../scripts/bench/chart.ts'

const TOKEN = /<(\/?)([a-z]+)((?: [A-Za-z][A-Za-z0-9-]*="[^"<]*")*)>|[^<>]+/gy

/** The elements of a document in order. Throws unless every tag is closed and every text is escaped. */
const elementsOf = (document: string): { readonly name: string; readonly attributes: string }[] => {
  const open: string[] = []
  const elements: { readonly name: string; readonly attributes: string }[] = []
  let end = 0
  for (const [token, closing, name = '', attributes = ''] of document.matchAll(TOKEN)) {
    end += token.length
    if (/&(?!amp;|lt;|gt;|quot;)/.test(token)) throw new Error(`Not escaped: ${token}`)
    if (name === '') continue
    if (closing === '/') {
      if (open.pop() !== name) throw new Error(`Not nested: ${token}`)
    } else {
      open.push(name)
      elements.push({ name, attributes })
    }
  }
  if (open.length > 0 || end !== document.length)
    throw new Error(`Not well-formed from ${document.slice(end, end + 80)}`)
  return elements
}

const chart: Chart = {
  name: 'throughput',
  title: 'Payments <fast> & "right"',
  xLabel: 'connections',
  yLabel: 'requests per second',
  series: [
    seriesOf('ours', [
      [1, [90, 100, 110]],
      [16, [400, 420, 500]],
      [64, [500]],
    ]),
    seriesOf('Emmett', [
      [1, [450]],
      [16, [1400]],
      [64, [1500]],
    ]),
  ],
}

const numbersIn = (attributes: string): number[] =>
  (attributes.match(/="-?[\d.]+"/g) ?? []).map(each => Number(each.slice(2, -1)))

describe('a chart', () => {
  it('is a well-formed SVG document with a line and a label for each series', () => {
    const elements = elementsOf(svgOf(chart))
    const named = (name: string) => elements.filter(element => element.name === name)
    expect(elements[0]?.attributes).to.contain('xmlns="http://www.w3.org/2000/svg"')
    expect(named('polyline')).to.have.length(2)
    expect(named('circle')).to.have.length(6)
    for (const text of ['ours', 'Emmett', 'Payments &lt;fast&gt; &amp; &quot;right&quot;', '1,500'])
      expect(svgOf(chart)).to.contain(`>${text}</text>`)
  })

  it('has every point within its frame, the higher figures above the lower ones', () => {
    const elements = elementsOf(svgOf(chart))
    const circles = elements.filter(({ name }) => name === 'circle').map(({ attributes }) => numbersIn(attributes))
    for (const [x = 0, y = 0] of circles) expect(x > 80 && x < 740 && y >= 48 && y <= 340).to.equal(true)
    const heights = circles.map(([, y]) => y ?? 0)
    expect(heights[0]).to.be.above(heights[1] ?? 0)
    expect(heights[2]).to.be.above(heights[5] ?? 0)
  })

  it('is well-formed without figures, with one point, and with figures that are not numbers', () => {
    const points = [[], [[1, [5]]], [[1, [Number.NaN]]], [[1, [0]]]] as const
    for (const each of points) {
      const document = svgOf({ ...chart, series: [seriesOf('ours', each)] })
      elementsOf(document)
      expect(document).not.to.match(/NaN|Infinity/)
    }
  })
})
