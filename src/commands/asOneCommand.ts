import { Unavailable } from '../ports.ts'
import type { Ledger } from './commandHandler.ts'

/**
 * Once a part of the command is durable, by this attempt or an earlier one with the same key, no failure is reported as
 * without effect: the caller would take a new key, and the command would be executed twice.
 */
export const asOneCommand = async <T>(ledger: Ledger, work: (ledger: Ledger) => Promise<T>): Promise<T> => {
  let isDurable = false
  const noteEffect = (): void => {
    isDurable = true
    ledger.noteEffect()
  }
  try {
    return await work({ ...ledger, noteEffect, hasEffect: () => isDurable })
  } catch (error) {
    const isContradicted = isDurable && error instanceof Unavailable && error.effect === 'none'
    throw isContradicted ? new Unavailable(error.dependency, { effect: 'unknown', cause: error }) : error
  }
}
