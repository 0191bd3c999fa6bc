import { z } from 'zod'
import { type AnyRoute, route } from '../route.ts'

const live = route({
  method: 'GET',
  path: '/livez',
  operationId: 'live',
  summary: 'Check that this process runs',
  tag: 'Health',
  scope: 'none',
  rateClass: 'default',
  underAnyLoad: true,
  responses: { 200: { description: 'The process runs.', schema: z.object({ status: z.literal('ok') }) } },
  errors: [],
  handler: async () => ({ status: 200, body: { status: 'ok' } }),
})

const readiness = z.object({
  status: z.enum(['ready', 'not_ready']),
  checks: z.record(z.string(), z.string().regex(/^[a-z_]{1,20}$/)).meta({
    description:
      'The state of each dependency: ok or unavailable; of read_models: ok, lagging (one lacks an event of 30 s ago) or ' +
      'unavailable; of the processes of a service of several: ok or not_answering (one of them); and of each feed: waiting, catching_up, live, retrying, stalled (no progress for 30 s), stopped or off (sealing, without a signing key). The log and `ledger doctor` give the reasons.',
  }),
})

const ready = route({
  method: 'GET',
  path: '/readyz',
  operationId: 'ready',
  summary: 'Check that this process can serve requests',
  tag: 'Health',
  scope: 'none',
  rateClass: 'default',
  underAnyLoad: true,
  responses: {
    200: { description: 'The process can serve requests.', schema: readiness },
    503: { description: 'The process cannot serve requests; the checks name the cause.', schema: readiness },
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
