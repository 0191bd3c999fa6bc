import { Problem } from '../response/problemCatalogue.ts'
import type { Preference } from '../route.ts'
import { positionSchema } from '../resources/schemas.ts'

const MS_PER_SECOND = 1_000

/** The members of the list: a comma within quotes is none of its own. */
const MEMBER = /(?:"(?:[^"\\]|\\[^]?)*(?:"|$)|[^",])+/g

/**
 * RFC 7240: a preference that is not understood is ignored, and the first of two equal ones counts. A wait beyond what the
 * deadline of the request permits is cut short to that.
 */
export const preferenceOf = (header: string | undefined, waitMaxMs: number): Preference => {
  const asked = ((header ?? '').match(MEMBER) ?? []).map(
    preference => preference.split(';', 1)[0]?.trim().toLowerCase() ?? '',
  )
  const wait = asked
    .map(preference => /^wait="?(\d{1,6})"?$/.exec(preference)?.[1])
    .find(seconds => seconds !== undefined)
  return {
    respondAsync: asked.includes('respond-async'),
    waitMs: wait === undefined ? undefined : Math.min(Number(wait) * MS_PER_SECOND, waitMaxMs),
  }
}

/** If-Min-Position: a position of the log, as Ledger-Position gave it. */
export const minPositionOf = (header: string | undefined): bigint | undefined => {
  if (header === undefined) return undefined
  const position = positionSchema.safeParse(header)
  if (!position.success) throw new Problem('precondition_invalid', { detail: 'If-Min-Position: a position.' })
  return BigInt(position.data)
}
