import { Problem } from '../response/problemCatalogue.ts'

/** The capacity that all requests of a process share: places for those at work, and memory for the bodies that are awaited. */

/** More requests at once would only wait in line; it is better to refuse them, and to be asked again. */
const AT_WORK_MAX = 1_000
const BODIES_MAX = 1_000
const BODIES_MAX_BYTES = 32 * 1024 * 1024

type Release = () => void

const once = (release: Release): Release => {
  let isDone = false
  return () => {
    if (isDone) return
    isDone = true
    release()
  }
}

export type Places = {
  /** The function that gives the place back, or why there is none: for anybody, or for this caller. */
  readonly take: (caller: string) => Release | 'none_left' | 'share_used'
}

/**
 * A caller may hold no more places than would still be free: one alone gets half of them, two get a third each, and there
 * is a place for every caller that holds none yet, however much the others want.
 */
export const createPlaces = (max = AT_WORK_MAX): Places => {
  const byCaller = new Map<string, number>()
  let free = max
  const give = (caller: string): void => {
    const rest = (byCaller.get(caller) ?? 1) - 1
    free++
    if (rest === 0) byCaller.delete(caller)
    else byCaller.set(caller, rest)
  }
  return {
    take: caller => {
      const held = byCaller.get(caller) ?? 0
      if (free === 0) return 'none_left'
      if (held + 1 > free) return 'share_used'
      byCaller.set(caller, held + 1)
      free--
      return once(() => give(caller))
    },
  }
}

type Waiting = { readonly bytes: number; readonly giveUp: () => void }

export type Bodies = {
  /** Begins to wait for a body of at most so many bytes. `giveUp` is called when others need the memory more. */
  readonly wait: (caller: string, waiting: Waiting) => Release
}

/**
 * A new body is always awaited: where there is no memory for it, the caller that has most gives up the body for which it has
 * waited longest. A body that comes with its head, as nearly all do, is so never refused for those that do not come.
 */
export const createBodies = (max = BODIES_MAX, maxBytes = BODIES_MAX_BYTES): Bodies => {
  const byCaller = new Map<string, Set<Waiting>>()
  let count = 0
  let bytes = 0

  const remove = (caller: string, waiting: Waiting): void => {
    const own = byCaller.get(caller)
    if (!own?.delete(waiting)) return
    if (own.size === 0) byCaller.delete(caller)
    count--
    bytes -= waiting.bytes
  }

  const giveUpOne = (): void => {
    let [most] = byCaller
    for (const entry of byCaller) if (most === undefined || entry[1].size > most[1].size) most = entry
    const [caller = '', own] = most ?? []
    for (const oldest of own ?? []) {
      remove(caller, oldest)
      return oldest.giveUp()
    }
  }

  return {
    wait: (caller, waiting) => {
      while (count > 0 && (count + 1 > max || bytes + waiting.bytes > maxBytes)) giveUpOne()
      const own = byCaller.get(caller) ?? new Set()
      byCaller.set(caller, own.add(waiting))
      count++
      bytes += waiting.bytes
      return once(() => remove(caller, waiting))
    },
  }
}

export type Capacity = { readonly places: Places; readonly bodies: Bodies }

export const createCapacity = (): Capacity => ({ places: createPlaces(), bodies: createBodies() })

/** The share of the capacity that one request holds: a place, or memory for its body, or nothing. */
export type Holding = {
  /** Takes a place on the account of this caller, and gives back what was held before. Throws Problem. */
  readonly work: (caller: string) => void
  /** Gives back what is held, until it is taken again. */
  readonly rest: () => void
  /** Gives the place back while the body is awaited. */
  readonly wait: (caller: string, waiting: Waiting) => void
  /** Gives everything back for good: the answer has gone out, or is one that has no end. */
  readonly leave: () => void
}

export const holdingOf = ({ places, bodies }: Capacity): Holding => {
  let release: Release = () => undefined
  let isOver = false
  return {
    work: caller => {
      release()
      if (isOver) return
      const taken = places.take(caller)
      if (taken === 'none_left') throw new Problem('overloaded')
      if (taken === 'share_used')
        throw new Problem('rate_limited', { detail: 'Too many requests of this caller are at work at once.' })
      release = taken
    },
    rest: () => release(),
    wait: (caller, waiting) => {
      release()
      if (!isOver) release = bodies.wait(caller, waiting)
    },
    leave: () => {
      isOver = true
      release()
    },
  }
}
