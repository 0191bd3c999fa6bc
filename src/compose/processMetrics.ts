import { performance } from 'node:perf_hooks'
import { observe } from '../lib/metrics.ts'

/** The metrics of the process itself, under the names that Prometheus' and OpenTelemetry's libraries have for Node. */

const MICROSECONDS_PER_SECOND = 1_000_000

/** The share of the time since the last reading in which the event loop worked. */
const createUtilization = (): (() => number) => {
  let last = performance.eventLoopUtilization()
  return () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, last)
    last = now
    return utilization
  }
}

/** Adds the metrics of this process. OpenTelemetry's instrumentation of the runtime has its own. */
export const observeProcess = (): void => {
  const singleValue = (value: number) => [{ labels: {}, value }]
  const utilization = createUtilization()
  const textOnly = true
  observe({
    name: 'process.resident.memory',
    unit: 'By',
    help: 'Resident memory of the process.',
    textOnly,
    read: () => singleValue(process.memoryUsage.rss()),
  })
  observe({
    name: 'process.cpu',
    unit: 's',
    type: 'counter',
    help: 'Processor time of the process, user and system.',
    textOnly,
    read: () => {
      const { user, system } = process.cpuUsage()
      return singleValue((user + system) / MICROSECONDS_PER_SECOND)
    },
  })
  observe({
    name: 'nodejs.eventloop.utilization',
    unit: '1',
    help: 'Share of the time since the last scrape in which the event loop worked.',
    textOnly,
    read: () => singleValue(utilization()),
  })
}
