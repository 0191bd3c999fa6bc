/** Why a fact was not delivered, in the words that its tenant is told. */

/** Of a fact that waits for nothing but an earlier one. */
export const BEHIND_REASON = 'An earlier one of its key is parked.'
const TOO_LARGE_REASON = 'It is larger than the broker takes.'
const NOT_DELIVERED_REASON = 'It could not be delivered; the operators of the ledger know why.'

/**
 * The recorded reason may be the text of any error, with addresses and internals in it, which is for operators alone. A
 * tenant is told one of three sentences, which never change.
 */
export const toldReason = (recorded: string): string => {
  if (recorded === BEHIND_REASON) return BEHIND_REASON
  return recorded.startsWith('FactTooLarge: ') ? TOO_LARGE_REASON : NOT_DELIVERED_REASON
}
