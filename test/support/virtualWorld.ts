import type { CrashPoint } from '../../src/lib/crashPoints.ts'
import type { World } from '../../src/ports.ts'

/** mulberry32: deterministic by seed, from 0 up to 1. */
export const randomOf = (seed: number): (() => number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

export type VirtualWorld = World & {
  /** Every sleep, in milliseconds. */
  readonly slept: readonly number[]
  /** Advances the clock. */
  readonly pass: (timeMs: number) => void
}

const BEGIN_MS = Date.parse('2026-01-01T00:00:00.000Z')

/** A clock that only `pass` and sleeps advance, and randomness from a seed. Sleeps take no real time. */
export const createVirtualWorld = (
  seed = 1,
  crashPoint: (name: CrashPoint) => void = () => undefined,
): VirtualWorld => {
  const random = randomOf(seed)
  const slept: number[] = []
  let nowMs = BEGIN_MS
  return {
    slept,
    pass: timeMs => void (nowMs += timeMs),
    now: () => nowMs,
    monotonicMs: () => nowMs - BEGIN_MS,
    randomBytes: count => Uint8Array.from({ length: count }, () => Math.floor(random() * 256)),
    sleep: async timeMs => {
      slept.push(timeMs)
      nowMs += timeMs
      await new Promise(resolve => setImmediate(resolve))
    },
    crashPoint,
  }
}
