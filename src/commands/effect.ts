import { Unavailable } from '../ports.ts'
import type { Ledger } from './handle.ts'

/**
 * Runs a command, however many appends it makes, and keeps account of its effect. Once a part of it is durable, by this
 * attempt or by an earlier one under the same key, no failure that follows is told as one without effect: the caller would
 * take a new key, and the command would be carried out twice.
 */
export const asOneCommand = async <T>(ledger: Ledger, work: (ledger: Ledger) => Promise<T>): Promise<T> => {
  let isDurable = false
  const noteEffect = (): void => {
    isDurable = true
    ledger.noteEffect()
  }
  try {
    return await work({ ...ledger, noteEffect })
  } catch (error) {
    const isContradicted = isDurable && error instanceof Unavailable && error.effect === 'none'
    throw isContradicted ? new Unavailable(error.part, 'unknown', error) : error
  }
}
