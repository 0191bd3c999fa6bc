import { z } from 'zod'
import type { Recorded } from '../../../../streams/envelope.ts'
import type { PeriodEvent } from '../../../../streams/period/index.ts'
import { periodEntity } from '../../../commands/entities.ts'
import { periodIdOf } from '../../../commands/periods.ts'
import { positionSchema } from '../../request/position.ts'
import { type AnyRoute, route } from '../../route.ts'
import { timeSchema } from '../commonSchemas.ts'
import { keyInCursor, pageQuery, pageReply, listFromLog } from '../paging.ts'

/** GET /periods: the closings of the tenant's books. `ledger periods` closes them. */

const closingSchema = z
  .object({
    through: z.iso.date().meta({ description: 'The last closed day, in UTC.' }),
    closed_at: timeSchema,
    closed_by: z.string().meta({ description: 'The operator who closed it.' }),
    reason: z.string().meta({ description: 'As the operator gave it.' }),
    complete_to: positionSchema.meta({
      description: 'The books were complete up to this position; entries of later events are dated after the period.',
    }),
  })
  .meta({ id: 'Closing' })

const render = ({ event: { data }, metadata }: Recorded<PeriodEvent>): z.input<typeof closingSchema> => ({
  through: data.through,
  closed_at: metadata.at,
  closed_by: metadata.subject,
  reason: data.reason,
  complete_to: String(data.complete_to),
})

const cursorSchema = z.object({ before: z.int() })

const listPeriods = route({
  method: 'GET',
  path: '/periods',
  operationId: 'list_periods',
  summary: 'List the closed periods of the books, the last one first',
  description: 'All days up to the last closed one are closed. No item: no period was ever closed.',
  tag: 'Books',
  scope: 'ledger:read',
  query: z.object(pageQuery),
  order: ['-closed_at'],
  ...listFromLog(closingSchema),
  handler: async call => {
    const { ledger, query, principal, path } = call
    const binding = { tenant: principal.tenant, path }
    const before = keyInCursor(call, query.cursor, { binding, schema: cursorSchema })?.before
    const from = before === undefined ? {} : { from: BigInt(before - 1) }
    const range = { direction: 'backwards' as const, limit: query.limit + 1, ...from }
    const read = await Array.fromAsync(ledger.aggregates.events(periodEntity, periodIdOf(principal.tenant), range))
    const page = read.slice(0, query.limit)
    const last = page.at(-1)
    return pageReply(call, {
      items: page.map(render),
      next: last && read.length > page.length ? { before: Number(last.revision) } : undefined,
      ...{ binding, asOfPosition: String(page[0]?.position ?? 0n), parameters: { limit: query.limit } },
    })
  },
})

export const periodRoutes: readonly AnyRoute[] = [listPeriods]
