import { z } from 'zod'
import { type AnyRoute, route } from '../route.ts'

/** The health endpoints: /livez and /readyz. */

const live = route({
  method: 'GET',
  path: '/livez',
  operationId: 'live',
  summary: 'Whether this process runs',
  tag: 'Health',
  scope: 'none',
  rateClass: 'default',
  underAnyLoad: true,
  responses: { 200: { description: 'It does.', schema: z.object({ status: z.literal('ok') }) } },
  errors: [],
  handler: async () => ({ status: 200, body: { status: 'ok' } }),
})

const readiness = z.object({
  status: z.enum(['ready', 'not_ready']),
  checks: z.record(z.string(), z.string().regex(/^[a-z_]{1,20}$/)).meta({
    description:
      'Of each part: ok or unavailable. Of each feed: waiting, catching_up, live, retrying, stalled (nothing taken in for ' +
      '30 s) or stopped. The reasons are in the log, and told by ledger doctor.',
  }),
})

const ready = route({
  method: 'GET',
  path: '/readyz',
  operationId: 'ready',
  summary: 'Whether this process can serve, and what is wrong if not',
  tag: 'Health',
  scope: 'none',
  rateClass: 'default',
  underAnyLoad: true,
  responses: {
    200: { description: 'It can.', schema: readiness },
    503: { description: 'It cannot: see the checks.', schema: readiness },
  },
  errors: [],
  handler: async ({ health }) => {
    const report = await health()
    return {
      status: report.ready ? 200 : 503,
      body: { status: report.ready ? 'ready' : 'not_ready', checks: report.checks },
    }
  },
})

export const healthRoutes: readonly AnyRoute[] = [live, ready]
