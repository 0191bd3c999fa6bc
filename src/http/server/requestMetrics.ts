import { SECOND_MS } from '../../lib/time.ts'
import type { Response as Outgoing } from 'express'
import { createHistogram, type Labels } from '../../lib/metrics.ts'
import { requestedVersionOf } from '../versions/requestedVersion.ts'

/** Its attributes are never ids, names or texts of callers, so the number of series is bounded. */

const NAME = 'ledger.http.request.duration'
/** Seconds, around the deadlines of the contract. */
const BOUNDARIES_SECONDS = [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10]
/** The route of requests that no declared route answers. */
const NO_ROUTE = 'none'

/** Records each response when it has ended; one that is streamed counts up to its first byte. */
export type RequestMetrics = (res: Pick<Outgoing, 'locals' | 'statusCode'>) => void

/** To be called after OpenTelemetry has started: the meter of an earlier call would never record. */
export const createRequestMetrics = (): RequestMetrics => {
  const durations = createHistogram({
    name: NAME,
    unit: 's',
    help: 'Duration of requests, by route template, status class, error code and API version.',
    boundaries: BOUNDARIES_SECONDS,
  })
  return res => {
    const { startedAt, streamedAt = performance.now(), route = NO_ROUTE, errorCode } = res.locals
    const labels: Labels = {
      route: String(route),
      status_class: `${Math.floor(res.statusCode / 100)}xx`,
      api_version: requestedVersionOf(res).version,
      ...(errorCode === undefined ? {} : { error_code: String(errorCode) }),
    }
    durations.record((Number(streamedAt) - Number(startedAt)) / SECOND_MS, labels)
  }
}
