import { faults, LEADERLESS } from './faults.ts'
import type { Random } from './random.ts'
import { drawReplacements } from './replacements.ts'

/** The plan of a run: actions of clients and faults with their times, drawn by the seed or kept from an earlier run. */

/** An entry draws from the random numbers of its kind and number, so it does the same in any plan with this seed. */
export type PlanEntry = {
  readonly number: number
  readonly atMs: number
  readonly kind: 'action' | 'fault' | 'end'
  readonly name: string
}
export type Plan = readonly PlanEntry[]

/** An entry as it is recorded in bugs.ts. */
export type RecordedEntry = readonly [atMs: number, kind: PlanEntry['kind'], number: number, name: string]
export const recordedEntryOf = ({ atMs, kind, number, name }: PlanEntry): RecordedEntry => [atMs, kind, number, name]
export const planEntryOf = ([atMs, kind, number, name]: RecordedEntry): PlanEntry => ({ atMs, kind, number, name })

/** The event store is restored from a backup at the end of the run. */
export const RESTORED = 'restored log'

export const BUSY_MS = 7_000
const ACTIONS_MIN = 16
const ACTIONS_MAX = 36
const FAULTS_MAX = 6
/** The number of actions and faults in a long run follows from its length. */
const ACTION_EVERY_MS = 6_000
const FAULT_EVERY_MS = 300_000
/** Beside another build they are denser: most of a run's cost is that of idle processes. */
const FAULT_EVERY_MS_BESIDE = 60_000

type Weights = Readonly<Record<string, number>>

const drawName = (random: Random, weights: Weights): string => {
  const total = Object.values(weights).reduce((sum, weight) => sum + weight, 0)
  let left = random.next() * total
  for (const [name, weight] of Object.entries(weights)) if ((left -= weight) < 0) return name
  return Object.keys(weights)[0] ?? ''
}

const FAULT_WEIGHTS: Weights = Object.fromEntries(Object.entries(faults).map(([name, { weight }]) => [name, weight]))

/** A time in whole milliseconds, so that the plan can be recorded exactly. */
const timeIn = (random: Random, busyMs: number): number => Math.floor(random.next() * busyMs)

/** Faults that a run has at most once. They are drawn separately, so that they do not change the draws of the others. */
const ONCE_AT_MOST: readonly (readonly [name: string, chance: number, kind: PlanEntry['kind']])[] = [
  ['rebuild', 0.08, 'fault'],
  ['duplicated requests', 0.15, 'fault'],
  ['greedy tenant', 0.2, 'fault'],
  ['lagging follower', 0.2, 'fault'],
  [LEADERLESS, 0.1, 'fault'],
  ['restored database', 0.15, 'fault'],
  [RESTORED, 0.06, 'end'],
]

const timeOfOnce = (name: string, random: Random, busyMs: number): number =>
  name === RESTORED ? busyMs : name === LEADERLESS ? 0 : timeIn(random, busyMs)

/** `hasOther`: whether another build runs beside this one, and processes are replaced. */
export type Drawn = { readonly busyMs: number; readonly hasOther: boolean }

const countsOf = (rng: Random, { busyMs, hasOther }: Drawn): readonly [actions: number, faults: number] => {
  if (busyMs <= BUSY_MS) return [rng.integer(ACTIONS_MIN, ACTIONS_MAX), rng.integer(0, FAULTS_MAX)]
  const [actions, faults] = [
    Math.ceil(busyMs / ACTION_EVERY_MS),
    Math.ceil(busyMs / (hasOther ? FAULT_EVERY_MS_BESIDE : FAULT_EVERY_MS)),
  ]
  return hasOther ? [Math.max(actions, ACTIONS_MAX), Math.max(faults, FAULTS_MAX)] : [actions, faults]
}

export const drawPlan = (random: Random, actionWeights: Weights, drawn: Drawn): Plan => {
  const { busyMs, hasOther } = drawn
  const rng = random.fork('plan')
  const [actionCount, faultCount] = countsOf(rng, drawn)
  const some = (count: number, kind: PlanEntry['kind'], from: Weights) =>
    Array.from({ length: count }, () => ({ atMs: timeIn(rng, busyMs), kind, name: drawName(rng, from) }))
  const many = [...some(actionCount, 'action', actionWeights), ...some(faultCount, 'fault', FAULT_WEIGHTS)].toSorted(
    (a, b) => a.atMs - b.atMs,
  )
  const once = ONCE_AT_MOST.flatMap(([name, chance, kind]) => {
    const apart = random.fork(`when ${name}`)
    return apart.chance(chance) ? [{ atMs: timeOfOnce(name, apart, busyMs), kind, name }] : []
  })
  const replacements = hasOther ? drawReplacements(random.fork('replacements'), busyMs) : []
  return [...many, ...once, ...replacements].map((one, number) => ({ ...one, number }))
}
