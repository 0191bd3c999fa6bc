import { z } from 'zod'
import { type AnyRoute, route } from '../route.ts'

const live = route({
  method: 'GET',
  path: '/livez',
  operationId: 'live',
  summary: 'Check that this process runs',
  tag: 'Health',
  scope: 'none',
  underAnyLoad: true,
  responses: { 200: { description: 'The process runs.', schema: z.object({ status: z.literal('ok') }) } },
  handler: async () => ({ status: 200, body: { status: 'ok' } }),
})

const query = z.object({
  for: z
    .enum(['traffic'])
    .optional()
    .meta({
      description:
        'traffic: whether to send requests to this process, for load balancers. It is ready while it can answer, also without ' +
        'its dependencies, since its own errors say what has happened and when to retry.',
    }),
})

const readiness = z.object({
  status: z.enum(['ready', 'not_ready']),
  checks: z.record(z.string(), z.string().regex(/^[a-z_]{1,20}$/)).meta({
    description:
      'The state of this process: ok or shutting_down; of each dependency: ok or unavailable; of read_models: ok, lagging (one lacks an event of 30 s ago) or ' +
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
  underAnyLoad: true,
  query,
  responses: {
    200: { description: 'The process can serve requests.', schema: readiness },
    503: { description: 'The process cannot serve requests; the checks name the cause.', schema: readiness },
  },
  handler: async ({ health, query: { for: purpose }, draining }) => {
    // A probe for traffic does not wait for dependencies that do not answer.
    const report = purpose === 'traffic' ? { ready: true, checks: {} } : await health()
    const ready = report.ready && !draining.aborted
    return {
      status: ready ? 200 : 503,
      body: {
        status: ready ? 'ready' : 'not_ready',
        checks: { process: draining.aborted ? 'shutting_down' : 'ok', ...report.checks },
      },
    }
  },
})

export const healthRoutes: readonly AnyRoute[] = [live, ready]
