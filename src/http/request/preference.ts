import { SECOND_MS } from '../../lib/time.ts'
import { Problem } from '../problems/problemCatalogue.ts'
import type { Preference } from '../services.ts'
import { positionSchema } from './position.ts'

/** The members of the list; a comma within quotes does not separate. */
const MEMBER = /(?:"(?:[^"\\]|\\[^]?)*(?:"|$)|[^",])+/g

/** RFC 7240: unknown preferences are ignored, the first of two counts. The deadline shortens a wait. */
export const preferenceOf = (header: string | undefined, waitMaxMs: number): Preference => {
  const preferences = ((header ?? '').match(MEMBER) ?? []).map(
    preference => preference.split(';', 1)[0]?.trim().toLowerCase() ?? '',
  )
  const wait = preferences
    .map(preference => /^wait="?(\d{1,6})"?$/.exec(preference)?.[1])
    .find(seconds => seconds !== undefined)
  return {
    respondAsync: preferences.includes('respond-async'),
    waitMs: wait === undefined ? undefined : Math.min(Number(wait) * SECOND_MS, waitMaxMs),
  }
}

/** The position of If-Min-Position, as a Ledger-Position header gave it. Throws Problem. */
export const minPositionOf = (header: string | undefined): bigint | undefined => {
  if (header === undefined) return undefined
  const position = positionSchema.safeParse(header)
  if (!position.success)
    throw new Problem('precondition_invalid', {
      detail: 'If-Min-Position must be a position, as a Ledger-Position header gave it.',
    })
  return BigInt(position.data)
}
