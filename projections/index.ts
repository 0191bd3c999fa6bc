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

/** The names by which operators know the read models: their folders. */
export const READ_MODEL_NAMES: readonly string[] = Object.keys({ ...projections, ...journals })
