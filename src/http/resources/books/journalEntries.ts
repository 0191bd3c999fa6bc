import { z } from 'zod'
import { type EntryAt, entriesPage, entryAt } from '../../../../projections/books/queries.ts'
import { entryView, eventIdOfEntry } from '../../../../projections/bookViews.ts'
import { idSchema } from '../../../../streams/ids.ts'
import { Problem } from '../../problems/problemCatalogue.ts'
import { type AnyRoute, route } from '../../route.ts'
import { resourceById } from '../commonSchemas.ts'
import { listOf, pageQuery } from '../paging.ts'
import { accountCodeSchema, booksQuery, entrySchema } from './bookSchemas.ts'
import { type BookFilters, type PageAt, readBooksItem, readBooksPage } from './booksPage.ts'

const common = { method: 'GET', tag: 'Books', scope: 'ledger:read' } as const

const listEntries = route({
  ...common,
  path: '/journal-entries',
  operationId: 'list_journal_entries',
  summary: 'List the entries of the journal, newest first',
  query: z.object({
    ...pageQuery,
    ...booksQuery,
    account: accountCodeSchema.optional().meta({ description: 'Only entries with a posting to this account.' }),
    order_id: idSchema('ord').optional(),
    invoice_id: idSchema('inv').optional(),
    payment_id: idSchema('pay').optional(),
  }),
  ...listOf(entrySchema),
  order: ['-position'],
  handler: call =>
    readBooksPage(call, {
      page: ({ after, ...at }: PageAt, filters: BookFilters) =>
        entriesPage({ ...at, ...filters, before: after === undefined ? undefined : BigInt(after) }),
      keyOf: ({ position }: EntryAt) => position.toString(),
      render: entryView,
    }),
})

const readEntry = route({
  ...common,
  path: '/journal-entries/{id}',
  operationId: 'read_journal_entry',
  summary: 'Read an entry of the journal',
  params: z.object({ id: idSchema('ent') }),
  query: z.object(booksQuery),
  isList: true,
  ...resourceById(entrySchema, 'The entry.'),
  errors: ['precondition_invalid', 'projection_behind'],
  handler: call => {
    const eventId = eventIdOfEntry(call.params.id)
    if (eventId === undefined) throw new Problem('resource_not_found')
    return readBooksItem(call, {
      query: (tenant, position) => entryAt(tenant, eventId, position),
      render: entryView,
    })
  },
})

export const journalEntryRoutes: readonly AnyRoute[] = [listEntries, readEntry]
