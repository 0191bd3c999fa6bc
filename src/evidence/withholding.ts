import { canonicalJson } from '../lib/identifiers.ts'
import type { JsonObject } from '../ports.ts'

export const EVENT_STATES = ['present', 'changed', 'missing'] as const
export const WITHHELD_REASONS = ['credential', 'idempotency_record', 'not_readable'] as const

type Withheld = { readonly pointer: string; readonly reason: (typeof WITHHELD_REASONS)[number] }

/** The text of the event as far as it is shown; null if the whole event is withheld. */
export type ShownEvent = { readonly event: string | null; readonly withheld: Withheld[] }

export const holdsLogSecret = (stream: string): boolean => stream.startsWith('secret-')

/** Streams whose events have something from which a credential or an id could be guessed. */
export const holdsCredentials = (stream: string): boolean => holdsLogSecret(stream) || stream.startsWith('apiKey-')

const isObject = (value: unknown): value is JsonObject =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

/** As its tenant may see it: the idempotency record may be another caller's, and bytes that are no JSON could hide one. */
export const shownTo = (stream: string, canonical: Buffer): ShownEvent => {
  if (holdsCredentials(stream)) return { event: null, withheld: [{ pointer: '', reason: 'credential' }] }
  const text = canonical.toString('utf8')
  const record = JSON.parse(text) as JsonObject
  const { data } = record
  const { data_hex, ...withoutBytes } = record
  if (data_hex !== undefined)
    return { event: canonicalJson(withoutBytes), withheld: [{ pointer: '/data_hex', reason: 'not_readable' }] }
  if (!isObject(data) || (data['claim'] ?? null) === null) return { event: text, withheld: [] }
  const { claim: _, ...shown } = data
  return {
    event: canonicalJson({ ...record, data: shown }),
    withheld: [{ pointer: '/data/claim', reason: 'idempotency_record' }],
  }
}
