import { z } from 'zod'
import type { EventOf } from '../codec.ts'

/** The checks that can decide, in the order in which they run. */
export const ACCESS_CHECKS = ['scope', 'tenant', 'ownership', 'state', 'policy'] as const
export type AccessCheck = (typeof ACCESS_CHECKS)[number]

const accessRequest = {
  /** The operation id of the contract. */
  operation: z.string(),
  /** The id of the resource that was asked for; null when none was named, or nothing that could be an id. */
  resource: z.string().nullable(),
}

export const accessEvents = {
  /** Granted access to a resource by an audited operation that leaves no other event. */
  AccessGranted: z.object({
    ...accessRequest,
    /** As the caller gave it, where the operation takes one. */
    reason: z.string().optional(),
  }),
  /** `code` is the problem that the caller got; `check` is the reason, which only auditors see. */
  AccessDenied: z.object({
    ...accessRequest,
    check: z.enum(ACCESS_CHECKS),
    code: z.string(),
    /** The number of denials that the record stands for; one when absent. */
    count: z.int().min(2).optional(),
  }),
}
export type AccessEvent = EventOf<typeof accessEvents>
