import { Problem } from './problem.ts'
import type { Preference } from './route.ts'
import { positionSchema } from './schemas.ts'

/** Nobody waits longer than the deadline of a request, less what the answer itself takes. */
const WAIT_MAX_SECONDS = 8

/** The members of the list: a comma within quotes is none of its own. */
const MEMBER = /(?:"(?:[^"\\]|\\[^]?)*(?:"|$)|[^",])+/g

/** RFC 7240: what is not understood is ignored, and the first of two equal preferences counts. */
export const preferenceOf = (header: string | undefined): Preference => {
  const asked = ((header ?? '').match(MEMBER) ?? []).map(
    preference => preference.split(';', 1)[0]?.trim().toLowerCase() ?? '',
  )
  const wait = asked
    .map(preference => /^wait="?(\d{1,6})"?$/.exec(preference)?.[1])
    .find(seconds => seconds !== undefined)
  return {
    respondAsync: asked.includes('respond-async'),
    waitMs: wait === undefined ? undefined : Math.min(Number(wait), WAIT_MAX_SECONDS) * 1_000,
  }
}

/** If-Min-Position: a position of the log, as Ledger-Position gave it. */
export const minPositionOf = (header: string | undefined): bigint | undefined => {
  if (header === undefined) return undefined
  const position = positionSchema.safeParse(header)
  if (!position.success) throw new Problem('precondition_invalid', { detail: 'If-Min-Position: a position.' })
  return BigInt(position.data)
}
