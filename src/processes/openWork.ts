import type { Place } from '../feeds/checkpoints.ts'
import type { ParkedFact } from '../feeds/deadLetters.ts'

/**
 * The event that began something, and how a later run finds it again: it comes again to a reader that goes on `after` that
 * place, or it is in the table of parked events, which an operator had replayed.
 */
export type Origin = { readonly after: Place } | { readonly parked: ParkedFact }

export type Failed = { readonly fact: ParkedFact; readonly reason: string }

/** Parked events that need not be kept any more, and those that wait for an operator again. */
export type Settled = { readonly done: readonly ParkedFact[]; readonly failed: readonly Failed[] }

/** The work that is begun and not ended in one run, in the order in which it began. */
export type OpenWork<T> = {
  /** Does nothing for a key that is open already. */
  readonly begin: (key: string, work: T, origin: Origin) => void
  readonly get: (key: string) => T | undefined
  readonly end: (key: string) => void
  /** Gives up what came from a parked event, which waits for an operator again. False for anything else. */
  readonly giveUp: (key: string, reason: string) => boolean
  readonly entries: () => readonly (readonly [key: string, work: T])[]
  /** Where to go on so that all of it is found again; undefined when nothing is open. */
  readonly goOnAfter: () => Place | undefined
  readonly isHeld: (fact: ParkedFact) => boolean
  /** The parked events that were settled since the last call. */
  readonly takeSettled: () => Settled
}

type Item<T> = { readonly work: T; readonly origin: Origin }

export const createOpenWork = <T>(): OpenWork<T> => {
  const open = new Map<string, Item<T>>()
  let done: ParkedFact[] = []
  let failed: Failed[] = []
  return {
    begin: (key, work, origin) => {
      if (!open.has(key)) open.set(key, { work, origin })
    },
    get: key => open.get(key)?.work,
    end: key => {
      const origin = open.get(key)?.origin
      if (origin && 'parked' in origin) done.push(origin.parked)
      open.delete(key)
    },
    giveUp: (key, reason) => {
      const origin = open.get(key)?.origin
      if (origin === undefined || !('parked' in origin)) return false
      failed.push({ fact: origin.parked, reason })
      return open.delete(key)
    },
    entries: () => [...open].map(([key, { work }]) => [key, work] as const),
    goOnAfter: () => {
      for (const { origin } of open.values()) if ('after' in origin) return origin.after
      return undefined
    },
    isHeld: ({ position }) =>
      open.values().some(({ origin }) => 'parked' in origin && origin.parked.position === position),
    takeSettled: () => {
      const settled = { done, failed }
      done = []
      failed = []
      return settled
    },
  }
}
