import { Problem } from '../response/problemCatalogue.ts'

/** The capacity that all requests of a process share: slots for requests in progress, and memory for pending bodies. */

/** More concurrent requests would only queue; it is better to refuse them, so that they are retried. */
const SLOTS_MAX = 1_000
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

export type RequestSlots = {
  /** The function that releases the slot; or the reason why there is none, for any caller or for this one. */
  readonly take: (caller: string) => Release | 'none_left' | 'share_used'
}

/**
 * A caller may hold no more slots than are free before it takes its last one: a single caller gets half of all slots,
 * two get a third each, and a caller that holds none gets one as long as any is free.
 */
export const createRequestSlots = (max = SLOTS_MAX): RequestSlots => {
  const byCaller = new Map<string, number>()
  let free = max
  const releaseSlot = (caller: string): void => {
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
      return once(() => releaseSlot(caller))
    },
  }
}

type PendingBody = { readonly bytes: number; readonly giveUp: () => void }

export type PendingBodies = {
  /** Registers a pending body of at most `bytes`. `giveUp` is called when its memory is needed for another caller. */
  readonly add: (caller: string, waiting: PendingBody) => Release
}

/**
 * A new body is always accepted: without memory for it, the caller with the most pending bodies gives up its oldest
 * one. Nearly all bodies arrive together with their heads; these are never refused because of bodies that do not
 * arrive.
 */
export const createPendingBodies = (max = BODIES_MAX, maxBytes = BODIES_MAX_BYTES): PendingBodies => {
  const byCaller = new Map<string, Set<PendingBody>>()
  let count = 0
  let bytes = 0

  const remove = (caller: string, waiting: PendingBody): void => {
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
    add: (caller, waiting) => {
      while (count > 0 && (count + 1 > max || bytes + waiting.bytes > maxBytes)) giveUpOne()
      const own = byCaller.get(caller) ?? new Set()
      byCaller.set(caller, own.add(waiting))
      count++
      bytes += waiting.bytes
      return once(() => remove(caller, waiting))
    },
  }
}

export type Capacity = { readonly slots: RequestSlots; readonly bodies: PendingBodies }

export const createCapacity = (): Capacity => ({ slots: createRequestSlots(), bodies: createPendingBodies() })

/** The part of the capacity that one request holds: a slot, memory for its body, or nothing. */
export type CapacityLease = {
  /** Takes a slot for this caller, and releases what was held before. Throws Problem. */
  readonly takeSlot: (caller: string) => void
  /** Releases what is held; the request may take a slot again. */
  readonly release: () => void
  /** Releases the slot and registers the pending body. */
  readonly awaitBody: (caller: string, waiting: PendingBody) => void
  /** Releases everything for good: the response was sent, or is an endless stream. */
  readonly close: () => void
}

export const createCapacityLease = ({ slots, bodies }: Capacity): CapacityLease => {
  let release: Release = () => undefined
  let isOver = false
  return {
    takeSlot: caller => {
      release()
      if (isOver) return
      const slot = slots.take(caller)
      if (slot === 'none_left') throw new Problem('overloaded')
      if (slot === 'share_used')
        throw new Problem('rate_limited', { detail: 'Too many requests of this caller are at work at once.' })
      release = slot
    },
    release: () => release(),
    awaitBody: (caller, waiting) => {
      release()
      if (!isOver) release = bodies.add(caller, waiting)
    },
    close: () => {
      isOver = true
      release()
    },
  }
}
