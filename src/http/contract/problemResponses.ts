import { z } from 'zod'
import type { ZodOpenApiResponseObject } from 'zod-openapi'
import { failureHeadersOf } from './headers.ts'
import { type ErrorCode, Problem, PROBLEMS, retryOf, statusOf } from '../problems/problemCatalogue.ts'
import { documentOf } from '../problems/problemDocument.ts'

/** The error responses of openapi.json: endpoints with the same codes for a status refer to one response. */

const codes = Object.keys(PROBLEMS) as [ErrorCode, ...ErrorCode[]]

const problemSchema = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    instance: z.string(),
    code: z.enum(codes),
    category: z.enum([...new Set(codes.map(code => PROBLEMS[code].category))]),
    correlation_id: z.string(),
    retry: z.object({
      retryable: z.boolean(),
      strategy: z.enum([...new Set(codes.map(code => PROBLEMS[code].strategy))]),
      after_seconds: z.int().optional(),
    }),
    still_due: z.int().min(0).optional().meta({
      description:
        'With payment_exceeds_due: the amount that is still due, in minor units of the currency. Absent when the payment was refused after its key was bound, because other payments came first.',
    }),
    currency: z.string().optional().meta({ description: 'The currency of still_due.' }),
    errors: z.array(z.object({ pointer: z.string(), code: z.string(), detail: z.string() })).optional(),
  })
  .meta({ id: 'Problem', description: 'RFC 9457 problem details, with a stable code and retry guidance.' })

/** The codes of a status in the order of the catalogue, so the same codes give the same response. */
const inOrder = (errors: readonly ErrorCode[]): readonly ErrorCode[] => codes.filter(code => errors.includes(code))

const isOnlyOfStatus = (code: ErrorCode): boolean =>
  codes.filter(other => statusOf(other) === statusOf(code)).length === 1

const CORRELATION_ID = '3f0c6f1e-7f0e-4a35-9d57-9f2a1d8c4b60'
const exampleOf = (code: ErrorCode) => ({
  value: documentOf(new Problem(code), { instance: '/payments', correlationId: CORRELATION_ID }),
})

const responses = new Map<string, ZodOpenApiResponseObject>()

/** The response of this status for exactly these codes; the same object for every endpoint that has them. */
export const failureOf = (status: number, errors: readonly ErrorCode[]): ZodOpenApiResponseObject => {
  const ordered = inOrder(errors)
  const id = ordered.every(isOnlyOfStatus) ? String(status) : [status, ...ordered].join('.')
  const response = responses.get(id) ?? {
    id,
    description: ordered.map(code => `${code}: ${PROBLEMS[code].title}`).join(' '),
    headers: failureHeadersOf(status),
    content: {
      'application/problem+json': {
        schema: problemSchema,
        examples: Object.fromEntries(ordered.map(code => [code, exampleOf(code)])),
      },
    },
    'x-error-codes': ordered,
    'x-retry': Object.fromEntries(ordered.map(code => [code, retryOf(code)])),
    'x-status': status,
  }
  responses.set(id, response)
  return response
}
