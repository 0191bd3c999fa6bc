import { z } from 'zod'
import type { EventOf } from '../codec.ts'

/** The checks that can decide, in the order in which they are made. */
export const ACCESS_CHECKS = ['scope', 'tenant', 'ownership', 'state', 'policy'] as const
export type AccessCheck = (typeof ACCESS_CHECKS)[number]

const asked = {
  /** The operation id of the contract. */
  operation: z.string(),
  /** The id of what it was asked for; null where nothing was named, or nothing that could be an id. */
  resource: z.string().nullable(),
}

export const accessEvents = {
  /** Access to something sensitive, of which no other event tells. */
  AccessGranted: z.object(asked),
  /** `code` is what the caller was told, `check` the reason, which is the auditor's alone. */
  AccessDenied: z.object({
    ...asked,
    check: z.enum(ACCESS_CHECKS),
    code: z.string(),
    /** How many denials the record stands for; one when absent. */
    count: z.int().min(2).optional(),
  }),
}
export type AccessEvent = EventOf<typeof accessEvents>
