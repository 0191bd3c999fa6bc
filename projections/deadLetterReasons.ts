/** The reasons for which facts are parked, as their tenant sees them. */

/** The reason of a fact that waits only for an earlier one of its key. */
export const BEHIND_REASON = 'An earlier one of its key is parked.'
const TOO_LARGE_REASON = 'It is larger than the broker takes.'
const NOT_DELIVERED_REASON = 'It could not be delivered; the operators of the ledger know why.'

/**
 * The recorded reason may be the text of any error, with internal addresses, and is for operators alone. A tenant gets
 * one of three fixed sentences.
 */
export const reasonForTenant = (recorded: string): string => {
  if (recorded === BEHIND_REASON) return BEHIND_REASON
  return recorded.startsWith('FactTooLarge: ') ? TOO_LARGE_REASON : NOT_DELIVERED_REASON
}
