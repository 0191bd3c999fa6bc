import type { Machine } from './machine.ts'
import type { Timeline } from './timeline.ts'

/** Measures the virtual time in which processes of more than one build are alive. */
export const createSideBySide = ({ nowMs }: Pick<Timeline, 'nowMs'>) => {
  const alive = new Set<Machine>()
  let totalMs = 0
  let sinceMs = 0
  const add = (): void => {
    if (new Set([...alive].map(({ build }) => build)).size > 1) totalMs += nowMs() - sinceMs
    sinceMs = nowMs()
  }
  return {
    begin: (machine: Machine): void => {
      add()
      alive.add(machine)
    },
    end: (machine: Machine): void => {
      add()
      alive.delete(machine)
    },
    totalMs: (): number => {
      add()
      return totalMs
    },
  }
}
