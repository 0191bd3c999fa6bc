import type { Fault, FaultContext, WeightedFaults } from './faultActions.ts'
import type { Random } from './random.ts'
import type { Service } from './service.ts'
import { type SimulatedBuild, thisBuild } from './simulatedBuilds.ts'

/**
 * Replacements of processes by those of the other build, one process after the other, as in an upgrade:
 *
 *   other ──▶ this ──▶ other ──▶ half way, where the processes change their builds again and again ──▶ this, in some runs
 */

const START_MAX_MS = 1_000
const NEXT_MAX_MS = 2_000

/** The build that the process in the slot is replaced by; `index` counts the replacements of this fault. */
type NextBuild = (service: Service, slot: number, index: number) => SimulatedBuild

const shuffled = <T>(items: Iterable<T>, random: Random): readonly T[] =>
  [...items]
    .map(item => ({ item, tie: random.next() }))
    .toSorted((a, b) => a.tie - b.tie)
    .map(({ item }) => item)

const replace = (context: FaultContext, slot: number, build: SimulatedBuild): void => {
  const { service, history, random } = context
  if (service.builds[slot] === build) return
  history.count(`replacements by ${build.name}`)
  service.replaceBy(build, slot, random.next() * START_MAX_MS)
}

const replaceEach =
  (next: NextBuild): Fault =>
  context => {
    const { service, timeline, random } = context
    let delayMs = 0
    for (const [index, slot] of shuffled(service.builds.keys(), random).entries()) {
      timeline.after(delayMs, () => replace(context, slot, next(service, slot, index)))
      delayMs += random.next() * NEXT_MAX_MS
    }
    service.extendFaults(delayMs)
    return true
  }

const otherOf = ({ other = thisBuild }: Service): SimulatedBuild => other
const FORWARD = 'forward to this build'
const BACK = 'back to the other build'
const HALF_WAY = 'half way between the builds'
const CHANGE = 'processes change their builds'

export const replacements: WeightedFaults = {
  [FORWARD]: { weight: 0, begin: replaceEach(() => thisBuild) },
  [BACK]: { weight: 0, begin: replaceEach(otherOf) },
  [HALF_WAY]: { weight: 0, begin: replaceEach((service, _, index) => (index === 0 ? thisBuild : otherOf(service))) },
  [CHANGE]: {
    weight: 0,
    begin: replaceEach((service, slot) => (service.builds[slot] === thisBuild ? otherOf(service) : thisBuild)),
  },
}

/** When each begins, as a share of the run. */
const STARTS = [
  [FORWARD, 0.05],
  [BACK, 0.1],
  [HALF_WAY, 0.15],
] as const
const FINALLY = 0.95
const FINALLY_FORWARD_CHANCE = 0.5
const CHANGE_EVERY_MS = 120_000
const CHANGES_MIN = 3

/** The duration of a run in which both builds run side by side for this time, although some processes are down meanwhile. */
export const busyMsBeside = (sideBySideMs: number): number => sideBySideMs * 1.35

type Replacement = { readonly atMs: number; readonly kind: 'fault'; readonly name: string }

export const drawReplacements = (random: Random, busyMs: number): readonly Replacement[] => {
  const [, beganShare] = STARTS[2]
  const halfWayMs = (FINALLY - beganShare) * busyMs
  const entry = (name: string, atMs: number) => ({ atMs: Math.floor(atMs), kind: 'fault' as const, name })
  return [
    ...STARTS.map(([name, share]) => entry(name, share * busyMs)),
    ...Array.from({ length: Math.max(CHANGES_MIN, Math.round(halfWayMs / CHANGE_EVERY_MS)) }, () =>
      entry(CHANGE, beganShare * busyMs + random.next() * halfWayMs),
    ),
    ...(random.chance(FINALLY_FORWARD_CHANCE) ? [entry(FORWARD, FINALLY * busyMs)] : []),
  ]
}
