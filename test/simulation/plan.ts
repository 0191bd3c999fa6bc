import { faults } from './faults.ts'
import type { Random } from './random.ts'

/** The plan of a run: actions of clients and faults with their times, drawn by the seed or kept from an earlier run. */

/** An entry draws from the seed under its kind and number: it does the same in whichever plan it stands. */
export type Planned = {
  readonly number: number
  readonly atMs: number
  readonly kind: 'action' | 'fault' | 'end'
  readonly name: string
}
export type Plan = readonly Planned[]

/** An entry as it is written down in a test. */
export type Noted = readonly [atMs: number, kind: Planned['kind'], number: number, name: string]
export const noteOf = ({ atMs, kind, number, name }: Planned): Noted => [atMs, kind, number, name]
export const plannedAs = ([atMs, kind, number, name]: Noted): Planned => ({ atMs, kind, number, name })

/** The store is restored from a backup when everything else is over. */
export const RESTORED = 'restored log'

export const BUSY_MS = 7_000
const ACTIONS_MIN = 16
const ACTIONS_MAX = 36
const FAULTS_MAX = 6
/** In a long run: one action each so many milliseconds, and one fault. */
const ACTION_EVERY_MS = 6_000
const FAULT_EVERY_MS = 300_000

type Weighted = Readonly<Record<string, readonly [weight: number, unknown]>>

const drawn = (random: Random, weights: Weighted): string => {
  const total = Object.values(weights).reduce((sum, [weight]) => sum + weight, 0)
  let left = random.next() * total
  for (const [name, [weight]] of Object.entries(weights)) if ((left -= weight) < 0) return name
  return Object.keys(weights)[0] ?? ''
}

/** Faults of which a run has one at most, drawn beside the others so that these stay the same. */
const ONCE_AT_MOST: readonly (readonly [name: string, chance: number, kind: Planned['kind']])[] = [
  ['rebuild', 0.08, 'fault'],
  ['duplicated requests', 0.15, 'fault'],
  [RESTORED, 0.06, 'end'],
]

/** In whole milliseconds, so that a plan can be written down. */
const timeIn = (random: Random, busyMs: number): number => Math.floor(random.next() * busyMs)

export const drawPlan = (random: Random, actions: Weighted, busyMs: number): Plan => {
  const own = random.fork('plan')
  const isLong = busyMs > BUSY_MS
  const some = (count: number, kind: Planned['kind'], from: Weighted) =>
    Array.from({ length: count }, () => ({ atMs: timeIn(own, busyMs), kind, name: drawn(own, from) }))
  const actionCount = isLong ? Math.ceil(busyMs / ACTION_EVERY_MS) : own.integer(ACTIONS_MIN, ACTIONS_MAX)
  const faultCount = isLong ? Math.ceil(busyMs / FAULT_EVERY_MS) : own.integer(0, FAULTS_MAX)
  const many = [...some(actionCount, 'action', actions), ...some(faultCount, 'fault', faults)].toSorted(
    (a, b) => a.atMs - b.atMs,
  )
  const once = ONCE_AT_MOST.flatMap(([name, chance, kind]) => {
    const apart = random.fork(`when ${name}`)
    return apart.chance(chance) ? [{ atMs: kind === 'end' ? busyMs : timeIn(apart, busyMs), kind, name }] : []
  })
  return [...many, ...once].map((one, number) => ({ ...one, number }))
}
