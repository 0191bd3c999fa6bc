import { z } from 'zod'
import type { AnyEvent } from '../../../streams/decider.ts'
import type { Recorded } from '../../../streams/envelope.ts'
import { type Id, type IdPrefix, idSchema } from '../../../streams/ids.ts'
import { type Entity, type Kind, invoiceEntity, orderEntity, paymentEntity } from '../../commands/entities.ts'
import type { Scope } from '../../identity/principal.ts'
import { withTexts } from '../../personalTexts/personalTexts.ts'
import { Problem } from '../problems/problemCatalogue.ts'
import { textsFor } from './commonReplies.ts'
import { type AnyRoute, route } from '../route.ts'
import { keyInCursor, pageReply, pageQuery, listFromLog } from './paging.ts'
import { timeSchema } from './commonSchemas.ts'

const entrySchema = z
  .object({
    event_id: z.uuid(),
    type: z.string(),
    revision: z.int().min(0),
    at: timeSchema,
    subject: z.string(),
    client: z.string(),
    authority: z
      .string()
      .meta({ description: 'The scope that permitted the change, or the internal process that made it.' }),
    correlation_id: z.string(),
    causation_id: z.string(),
    data: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'HistoryEntry' })

const jsonOf = (data: object): Record<string, z.core.util.JSONType> => {
  // The idempotency record concerns one caller, and the name of a reference's stream nobody: they are not shown.
  const { claim: _, reference_stream: __, ...shown } = data as { claim?: unknown; reference_stream?: unknown }
  return JSON.parse(
    JSON.stringify(shown, (_name, value: unknown) => (typeof value === 'bigint' ? Number(value) : value)),
  )
}

const render = ({ event, eventId, revision, metadata }: Recorded<AnyEvent>): z.input<typeof entrySchema> => ({
  event_id: eventId,
  type: event.type,
  revision: Number(revision),
  at: metadata.at,
  subject: metadata.subject,
  client: metadata.client,
  authority: metadata.authority,
  correlation_id: metadata.correlationId,
  causation_id: metadata.causationId,
  data: jsonOf(event.data),
})

const cursorSchema = z.object({ after: z.int() })

const historyOf = <K extends Kind>(
  name: 'order' | 'invoice' | 'payment',
  scope: Scope,
  prefix: IdPrefix,
  entity: Entity<K>,
): AnyRoute =>
  route({
    method: 'GET',
    path: `/${name}s/{id}/history`,
    operationId: `read_${name}_history`,
    summary: `Everything that happened to the ${name}, oldest first; also after it was deleted`,
    tag: 'History',
    scope,
    params: z.object({ id: idSchema(prefix) }),
    query: z.object(pageQuery),
    order: ['revision'],
    showsDeleted: true,
    ...listFromLog(entrySchema),
    handler: async call => {
      const { ledger, params, query, principal, path } = call
      const id: Id<IdPrefix> = params.id
      const { aggregates } = ledger
      if ((await aggregates.first(entity, id))?.metadata.tenant !== principal.tenant)
        throw new Problem('resource_not_found')
      const binding = { tenant: principal.tenant, path }
      const after = keyInCursor(call, query.cursor, { binding, schema: cursorSchema })?.after ?? -1
      const range = { from: BigInt(after + 1), limit: query.limit + 1 }
      const read = await Array.fromAsync(aggregates.events(entity, id, range))
      const page = read.slice(0, query.limit)
      const end = after + page.length
      const hasMore = read.length > page.length
      const newest = hasMore ? await aggregates.newest(entity, id) : page.at(-1)
      const entries = page.map(render)
      const texts = await textsFor(
        call,
        entries.map(({ data }) => data),
      )
      return pageReply(call, {
        items: entries.map(entry => ({ ...entry, data: withTexts(entry.data, texts) })),
        next: hasMore ? { after: end } : undefined,
        ...{ binding, asOfPosition: String(newest?.position), parameters: { limit: query.limit } },
      })
    },
  })

export const historyRoutes: readonly AnyRoute[] = [
  historyOf('order', 'orders:read', 'ord', orderEntity),
  historyOf('invoice', 'invoices:read', 'inv', invoiceEntity),
  historyOf('payment', 'payments:read', 'pay', paymentEntity),
]
