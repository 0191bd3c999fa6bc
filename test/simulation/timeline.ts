import type { Random } from './random.ts'

/**
 * A discrete-event scheduler. An answer of a server or the end of a sleep is an entry with a virtual time, which is drawn from the
 * seed: so the seed decides the order in which concurrent work continues. Between two entries all microtasks run, and no other
 * code does.
 */
export type Timeline = {
  /** Virtual milliseconds since the run began. */
  readonly nowMs: () => number
  readonly after: (delayMs: number, run: () => void | Promise<void>) => Cancel
  /** Runs the entries in the order of their times until `isOver`, or until no entry is left before `untilMs`. */
  readonly advance: (untilMs: number, isOver?: () => boolean) => Promise<void>
  /** The number of entries that have run. */
  readonly steps: () => number
}

/** Cancels the entry. Has no effect when it has run. */
export type Cancel = () => void

type Entry = {
  readonly atMs: number
  /** Drawn from the seed, it decides the order of entries with the same time. */
  readonly tie: number
  readonly order: number
  readonly run: () => void | Promise<void>
  cancelled: boolean
}

const isBefore = (one: Entry, other: Entry): boolean =>
  one.atMs - other.atMs < 0 ||
  (one.atMs === other.atMs && (one.tie < other.tie || (one.tie === other.tie && one.order < other.order)))

/** A priority queue, as a binary heap with the earliest entry first. */
const createQueue = () => {
  const heap: Entry[] = []
  const at = (index: number): Entry | undefined => heap[index]
  const swap = (one: number, other: number): void => {
    const kept = heap[one] as Entry
    heap[one] = heap[other] as Entry
    heap[other] = kept
  }
  const rise = (from: number): void => {
    for (let child = from; child > 0; ) {
      const parent = (child - 1) >> 1
      if (!isBefore(heap[child] as Entry, heap[parent] as Entry)) return
      swap(child, parent)
      child = parent
    }
  }
  const sink = (): void => {
    for (let parent = 0; ; ) {
      const left = 2 * parent + 1
      const [one, other] = [at(left), at(left + 1)]
      if (one === undefined) return
      const child = other !== undefined && isBefore(other, one) ? left + 1 : left
      if (!isBefore(heap[child] as Entry, heap[parent] as Entry)) return
      swap(child, parent)
      parent = child
    }
  }
  return {
    first: (): Entry | undefined => heap[0],
    add: (entry: Entry): void => {
      heap.push(entry)
      rise(heap.length - 1)
    },
    removeFirst: (): void => {
      const last = heap.pop()
      if (last === undefined || heap.length === 0) return
      heap[0] = last
      sink()
    },
  }
}

/** Runs all microtasks, including those that they add: an immediate runs only afterwards. */
const runMicrotasks = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

export const createTimeline = (random: Random): Timeline => {
  const queue = createQueue()
  let nowMs = 0
  let order = 0
  let steps = 0
  return {
    nowMs: () => nowMs,
    after: (delayMs, run) => {
      const atMs = nowMs + Math.max(0, delayMs)
      const entry = { atMs, tie: random.next(), order: (order += 1), run, cancelled: false }
      queue.add(entry)
      return () => {
        entry.cancelled = true
      }
    },
    advance: async (untilMs, isOver = () => false) => {
      await runMicrotasks()
      for (;;) {
        const entry = queue.first()
        if (entry === undefined || entry.atMs > untilMs || isOver()) break
        queue.removeFirst()
        if (entry.cancelled) continue
        nowMs = entry.atMs
        steps += 1
        await entry.run()
        await runMicrotasks()
      }
      if (!isOver()) nowMs = Math.max(nowMs, untilMs)
    },
    steps: () => steps,
  }
}
