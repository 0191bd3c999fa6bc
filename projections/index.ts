import { apiKeys } from './apiKeys/projection.ts'
import { BOOKS, BOOKS_CATEGORIES, BOOKS_TABLES } from './books/projection.ts'
import { audit } from './audit/projection.ts'
import { facts } from './facts/projection.ts'
import { invoices } from './invoices/projection.ts'
import { operations } from './operations/projection.ts'
import { orders } from './orders/projection.ts'
import { payments } from './payments/projection.ts'
import { subscriptions } from './subscriptions/projection.ts'

/** All read models: those with a row per stream, and those with rows per event. */
export const projections = { orders, invoices, payments, operations, apiKeys, subscriptions } as const
export const journals = { facts, audit } as const
/** The books: several tables with one checkpoint. */
export const books = { name: BOOKS, categories: BOOKS_CATEGORIES, tables: BOOKS_TABLES } as const

/** The folder of each read model in projections/, and the name of its first table. */
export const READ_MODEL_FOLDERS: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries({ ...projections, ...journals, books }).map(([folder, { name }]) => [folder, name]),
)

/** Every table that the projector writes. */
export const READ_MODEL_TABLES: readonly string[] = [
  ...[...Object.values(projections), ...Object.values(journals), ...Object.values(books.tables)].map(
    ({ name }) => name,
  ),
]

/** The names by which operators know the read models: their folders. */
export const READ_MODEL_NAMES: readonly string[] = Object.keys(READ_MODEL_FOLDERS)
