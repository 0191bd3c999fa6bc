import { type Histogram, metrics, type ObservableResult } from '@opentelemetry/api'
import { within } from './time.ts'

/**
 * The metrics of this process. Each is defined once and has two readers: OpenTelemetry, where an exporter is
 * configured, and the text for Prometheus (compose/operatorPort.ts), which needs no exporter. The SDK of OpenTelemetry
 * is not loaded for the text, because it takes 24 MB of each process.
 *
 * Labels have values from closed sets (route templates, status classes, stable codes, versions, names of feeds and
 * dependencies), never ids, keys, tenants or texts of callers, so the number of series is bounded whatever is
 * requested.
 */

export type Labels = Readonly<Record<string, string>>
export type Sample = { readonly labels: Labels; readonly value: number }

type Definition = {
  /** With dots, as in OpenTelemetry; Prometheus gets underscores and the unit. */
  readonly name: string
  readonly help: string
  /** `''` for numbers of things. */
  readonly unit: '' | 's' | 'By' | '1'
}

type Line = { readonly suffix: string; readonly labels: Labels; readonly value: number }
type Family = Definition & {
  readonly type: 'gauge' | 'counter' | 'histogram'
  readonly lines: () => Promise<readonly Line[]> | readonly Line[]
}

const METER = 'payment-ledger'
const UNIT_SUFFIXES: Readonly<Record<Definition['unit'], string>> = { '': '', s: '_seconds', By: '_bytes', 1: '_ratio' }

/** The name in the text for Prometheus, which is the one that a collector makes of the OpenTelemetry name too. */
const textNameOf = ({ name, unit, type }: Family): string =>
  `${name.replaceAll('.', '_')}${UNIT_SUFFIXES[unit]}${type === 'counter' ? '_total' : ''}`

const families = new Map<string, Family>()

const escapedValue = (value: string): string =>
  value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"')

const labelsText = (labels: Labels): string => {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapedValue(value)}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

const familyText = async (family: Family, own: Labels): Promise<string> => {
  const name = textNameOf(family)
  const lines = await family.lines()
  const head = `# HELP ${name} ${family.help}\n# TYPE ${name} ${family.type}\n`
  const texts = lines.map(
    ({ suffix, labels, value }) => `${name}${suffix}${labelsText({ ...own, ...labels })} ${value}\n`,
  )
  return lines.length === 0 ? '' : head + texts.join('')
}

/** All metrics in the text format of Prometheus, version 0.0.4. `own` are labels of every line. */
export const metricsText = async (own: Labels): Promise<string> => {
  const texts = await Promise.all([...families.values()].map(family => familyText(family, own)))
  return texts.join('')
}

/** Joins the texts of several processes: a metric has one head, and the lines of all of them. */
export const joinedTexts = (texts: readonly string[]): string => {
  const heads = new Map<string, { head: string; lines: string }>()
  for (const text of texts)
    for (const [whole, head = '', lines = ''] of text.matchAll(/(# HELP .*\n# TYPE .*\n)((?:[^#].*\n)*)/g)) {
      const family = heads.get(head)
      if (family === undefined) heads.set(head, { head, lines: whole.slice(head.length) })
      else family.lines += lines
    }
  return [...heads.values()].map(({ head, lines }) => head + lines).join('')
}

/** A gauge or, with `type`, a counter whose value is read when it is asked for. */
export type ObservedOptions = Definition & {
  readonly type?: 'gauge' | 'counter'
  readonly read: () => Promise<readonly Sample[]> | readonly Sample[]
  /** For metrics that OpenTelemetry's instrumentation of the runtime has itself. */
  readonly textOnly?: boolean
}

/** Longer than the check of a dependency takes; a scrape of all processes waits for it (cluster/children.ts). */
const READ_MAX_MS = 3_000

/** Adds an observed metric. A metric that is not read in time has no lines. Returns the function that removes it. */
export const observe = ({ read, type = 'gauge', textOnly = false, ...definition }: ObservedOptions): (() => void) => {
  const samples = async (): Promise<readonly Sample[]> => {
    try {
      return await within(Promise.resolve(read()), READ_MAX_MS, () => [])
    } catch {
      return []
    }
  }
  const { name, help: description, unit } = definition
  const lines = async () => (await samples()).map(sample => ({ suffix: '', ...sample }))
  const family: Family = { ...definition, type, lines }
  families.set(name, family)
  const remove = (): void => void (families.get(name) === family && families.delete(name))
  if (textOnly) return remove
  const meter = metrics.getMeter(METER)
  const instrument =
    type === 'gauge'
      ? meter.createObservableGauge(name, { description, unit })
      : meter.createObservableCounter(name, { description, unit })
  const report = async (result: ObservableResult): Promise<void> => {
    for (const { labels, value } of await samples()) result.observe(value, labels)
  }
  instrument.addCallback(report)
  return () => {
    remove()
    instrument.removeCallback(report)
  }
}

type Series = { readonly labels: Labels; readonly counts: number[]; sum: number }

const seriesLines = ({ labels, counts, sum }: Series, boundaries: readonly number[]): readonly Line[] => {
  let cumulated = 0
  const buckets = counts.map((count, index) => {
    cumulated += count
    return { suffix: '_bucket', labels: { ...labels, le: String(boundaries[index] ?? '+Inf') }, value: cumulated }
  })
  return [...buckets, { suffix: '_sum', labels, value: sum }, { suffix: '_count', labels, value: cumulated }]
}

export type HistogramOptions = Definition & {
  /** The upper bounds of the buckets, ascending. */
  readonly boundaries: readonly number[]
}

/** A second one of a name continues the first. Call it after OpenTelemetry has started: an earlier one never records. */
export const createHistogram = ({ boundaries, ...definition }: HistogramOptions): Pick<Histogram<Labels>, 'record'> => {
  const { name, help: description, unit } = definition
  const advice = { explicitBucketBoundaries: [...boundaries] }
  const exported = metrics.getMeter(METER).createHistogram<Labels>(name, { description, unit, advice })
  const seriesByLabels = histograms.get(name) ?? new Map<string, Series>()
  histograms.set(name, seriesByLabels)
  families.set(name, {
    ...definition,
    type: 'histogram',
    lines: () => [...seriesByLabels.values()].flatMap(series => seriesLines(series, boundaries)),
  })
  return {
    record: (value, labels = {}) => {
      exported.record(value, labels)
      const key = Object.values(labels).join('\n')
      let series = seriesByLabels.get(key)
      if (series === undefined) {
        series = { labels, counts: Array.from({ length: boundaries.length + 1 }, () => 0), sum: 0 }
        seriesByLabels.set(key, series)
      }
      const index = boundaries.findIndex(boundary => value <= boundary)
      const bucket = index === -1 ? boundaries.length : index
      series.counts[bucket] = (series.counts[bucket] ?? 0) + 1
      series.sum += value
    },
  }
}

const histograms = new Map<string, Map<string, Series>>()
