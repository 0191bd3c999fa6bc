import { randomOf } from '../support/virtualWorld.ts'

/** A random number generator. The same seed and the same order of draws give the same values on every machine. */
export type Random = {
  /** A number from 0 to 1, without 1. */
  readonly next: () => number
  /** An integer from `least` to `most`, both included. */
  readonly integer: (least: number, most: number) => number
  readonly chance: (probability: number) => boolean
  readonly pick: <T>(items: readonly T[]) => T
  readonly bytes: (count: number) => Uint8Array
  /** A generator of its own for each label, whose values do not depend on the draws made here. */
  readonly fork: (label: string) => Random
}

const FNV_OFFSET = 2_166_136_261
const FNV_PRIME = 16_777_619

/** FNV-1a over the seed and the label. */
const seedOf = (seed: number, label: string): number => {
  let hash = FNV_OFFSET
  for (const character of `${seed}/${label}`) {
    hash ^= character.codePointAt(0) ?? 0
    hash = Math.imul(hash, FNV_PRIME)
  }
  return hash >>> 0
}

export const createRandom = (seed: number, label = ''): Random => {
  const own = seedOf(seed, label)
  const next = randomOf(own)
  const integer = (least: number, most: number): number => least + Math.floor(next() * (most - least + 1))
  return {
    next,
    integer,
    chance: probability => next() < probability,
    pick: items => {
      const picked = items[integer(0, items.length - 1)]
      if (picked === undefined) throw new RangeError('Nothing can be picked from an empty list.')
      return picked
    },
    bytes: count => Uint8Array.from({ length: count }, () => integer(0, 255)),
    fork: inner => createRandom(own, inner),
  }
}
