import { z } from 'zod'
import type { Sql } from '../../ports.ts'
import { permitOperator } from '../access/operators.ts'
import { type AnyRoute, route } from '../route.ts'
import { apiVersionUsage } from '../versions/apiVersionUsage.ts'
import { timeSchema } from './commonSchemas.ts'

/** GET /installation: what operators see of the processes of the service, of all tenants together. */

const USAGE_DAYS = 30
const USAGE_ROWS_MAX = 200
const PROCESSES_MAX = 100

const leaseSchema = z
  .object({
    name: z.string().meta({ description: 'What is done by one process at a time.' }),
    holder: z.string().meta({ description: 'The process that has it, or had it last.' }),
    epoch: z.int().min(1).meta({ description: 'How often it was taken.' }),
    taken_at: timeSchema.meta({ description: 'When its holder took it.' }),
  })
  .meta({ id: 'Lease' })

const processSchema = z
  .object({
    name: z.string().meta({ description: 'The machine and the process id, as holders of leases are named.' }),
    roles: z.array(z.string()).meta({ description: 'What it does.' }),
    started_at: timeSchema,
    stopped_at: timeSchema.nullable().meta({ description: 'Null while it runs, and for one that was killed.' }),
  })
  .meta({ id: 'Process' })

const usageSchema = z
  .object({
    version: z.string().meta({ description: 'The version of the contract.' }),
    tenant_id: z.string().meta({ description: 'The tenant of the caller.' }),
    client: z.string().meta({ description: 'The OAuth client of the caller, or its API key.' }),
    requests: z
      .int()
      .min(0)
      .meta({ description: `The number of requests in the last ${USAGE_DAYS} days.` }),
  })
  .meta({ id: 'ApiVersionUse' })

const durationsSchema = z.object({
  boundaries_seconds: z.array(z.number()).meta({ description: 'The durations that requests are counted by.' }),
  series: z
    .array(
      z.object({
        status_class: z.string().meta({ description: 'The class of the status, such as 2xx.' }),
        error_code: z.string().nullable().meta({ description: 'The error code; null for a success.' }),
        requests: z.int().min(0).meta({ description: 'The number of requests.' }),
        within: z.array(z.int().min(0)).meta({ description: 'How many of them took at most each of the durations.' }),
      }),
    )
    .meta({ description: 'The requests since the processes on this machine began, by outcome.' }),
})

const certificateSchema = z
  .object({
    name: z.string().meta({ description: 'The setting, and the parameter of its connection string.' }),
    expires_at: timeSchema.nullable().meta({ description: 'Null if the file has no certificate that can be read.' }),
  })
  .meta({ id: 'Certificate' })

const installationSchema = z
  .object({
    processes: z
      .array(processSchema)
      .meta({ description: `The last ${PROCESSES_MAX} processes of the service that have started, the newest first.` }),
    leases: z.array(leaseSchema).meta({ description: 'The work that one process does for all.' }),
    api_versions: z.array(usageSchema).meta({
      description: `Who uses which version of the contract: the ${USAGE_ROWS_MAX} most frequent, the most requests first.`,
    }),
    free_bytes: z
      .int()
      .min(0)
      .meta({ description: 'The free space of the data directory, on the machine that answers.' }),
    certificates: z.array(certificateSchema).meta({ description: 'Those that the settings name as files.' }),
    request_durations: durationsSchema.meta({
      description: 'How requests were answered by the processes on the machine that answers this one.',
    }),
  })
  .meta({ id: 'Installation' })

type Durations = z.input<typeof durationsSchema>

const BUCKET = /^ledger_http_request_duration_seconds_bucket\{(.*)\} (\d+)$/gm
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g

/** The histogram of requests in the text of the metrics, without its routes and versions. */
export const durationsIn = (metrics: string): Durations => {
  const series = new Map<string, { status_class: string; error_code: string | null; counts: Map<number, number> }>()
  for (const [, labels = '', count] of metrics.matchAll(BUCKET)) {
    const named = new Map([...labels.matchAll(LABEL)].map(([, name = '', value = '']) => [name, value]))
    const [status_class = '', error_code = null] = [named.get('status_class'), named.get('error_code')]
    const key = `${status_class} ${error_code}`
    const found = series.get(key) ?? { status_class, error_code, counts: new Map<number, number>() }
    series.set(key, found)
    const boundary = named.get('le') === '+Inf' ? Infinity : Number(named.get('le'))
    found.counts.set(boundary, (found.counts.get(boundary) ?? 0) + Number(count))
  }
  const all = new Set([...series.values()].flatMap(({ counts }) => [...counts.keys()]))
  const boundaries_seconds = [...all].filter(Number.isFinite).toSorted((a, b) => a - b)
  return {
    boundaries_seconds,
    series: [...series.values()].map(({ counts, ...outcome }) => ({
      ...outcome,
      requests: counts.get(Infinity) ?? 0,
      within: boundaries_seconds.map(boundary => counts.get(boundary) ?? 0),
    })),
  }
}

const LEASES = 'select name, holder, epoch, taken_at from ledger_meta.leases order by name'
/** The first process that waits for a lease creates the table. */
const HAS_LEASES = `select to_regclass('ledger_meta.leases') is not null as has_leases`

const PROCESSES = `select name, roles, started_at, stopped_at from service_processes
  order by started_at desc, name limit ${PROCESSES_MAX}`

type LeaseRow = { readonly name: string; readonly holder: string; readonly epoch: bigint; readonly taken_at: string }

const leasesIn = async (sql: Sql): Promise<z.input<typeof leaseSchema>[]> => {
  const [row] = await sql<{ has_leases: boolean }>(HAS_LEASES)
  const leases = row?.has_leases === true ? await sql<LeaseRow>(LEASES) : []
  return leases.map(lease => ({ ...lease, epoch: Number(lease.epoch) }))
}

type Use = z.input<typeof usageSchema>

const usesIn = async (sql: Sql): Promise<Use[]> => {
  const uses = new Map<string, Use>()
  for (const { version, tenant_id, client, requests } of await apiVersionUsage(sql, USAGE_DAYS)) {
    const key = JSON.stringify([version, tenant_id, client])
    uses.set(key, { version, tenant_id, client, requests: requests + (uses.get(key)?.requests ?? 0) })
  }
  return [...uses.values()].toSorted((a, b) => b.requests - a.requests).slice(0, USAGE_ROWS_MAX)
}

const readInstallation = route({
  method: 'GET',
  path: '/installation',
  operationId: 'read_installation',
  summary:
    'Read the state of the installation: processes, leases, API versions in use, disk, certificates, durations of requests',
  description: 'For callers of the tenant of the operators (setting OPERATORS_TENANT).',
  tag: 'Projections',
  scope: 'audit:installation',
  orScopes: ['projections:operate'],
  responses: { 200: { description: 'The installation.', schema: installationSchema } },
  errors: ['policy_denied'],
  handler: async call => {
    permitOperator(call)
    const { sql } = call.database
    const { freeBytes, certificates } = await call.machine()
    const body: z.input<typeof installationSchema> = {
      processes: await sql<z.input<typeof processSchema>>(PROCESSES),
      leases: await leasesIn(sql),
      api_versions: await usesIn(sql),
      free_bytes: freeBytes,
      certificates: [...certificates],
      request_durations: durationsIn(await call.metrics()),
    }
    return { status: 200, body }
  },
})

export const installationRoutes: readonly AnyRoute[] = [readInstallation]
