import { apiKeys } from './apiKeys/projection.ts'
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
