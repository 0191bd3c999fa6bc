import { reasonOf } from '../../../src/lib/connectionFailures.ts'
import { withoutSecrets } from '../../../src/lib/redaction.ts'
import { sentence } from '../../../src/lib/startupError.ts'
import { within } from '../../../src/lib/time.ts'

/** A finding says in `way_out` how to mend it. A check that could not be made says nothing about its subject. */
export type Check =
  | { readonly check: string; readonly status: 'ok' | 'not_used'; readonly detail: string }
  | {
      readonly check: string
      readonly status: 'finding' | 'not_checked'
      readonly detail: string
      readonly way_out: string
    }

export const ok = (check: string, detail: string): Check => ({ check, status: 'ok', detail: withoutSecrets(detail) })

export const notUsed = (check: string, detail: string): Check => ({ check, status: 'not_used', detail })

/** `detail` may end with the text of another system, so the full stop is added here. */
export const finding = (check: string, detail: string, way_out: string): Check => ({
  check,
  status: 'finding',
  detail: withoutSecrets(sentence(detail)),
  way_out,
})

/** `reason`: why the check could not be made; it may end with the text of another system. */
export const notChecked = (check: string, reason: string): Check => ({
  check,
  status: 'not_checked',
  detail: withoutSecrets(sentence(reason)),
  way_out: 'Repair the findings above, then run doctor again.',
})

const CHECK_MAX_MS = 8_000

/** Rejects if the work takes longer. */
export const answered = <T>(work: Promise<T>, maxMs: number = CHECK_MAX_MS): Promise<T> =>
  within(work, maxMs, () => {
    throw new Error(`no answer in ${maxMs / 1_000} s`)
  })

/** A check that cannot be made keeps no other check from being made. */
export const orNotChecked = async (check: string, work: () => Promise<Check>, maxMs?: number): Promise<Check> => {
  try {
    return await answered(work(), maxMs)
  } catch (error) {
    return notChecked(check, reasonOf(error))
  }
}
