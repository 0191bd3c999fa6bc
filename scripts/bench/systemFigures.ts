import { readdir, readFile } from 'node:fs/promises'
import { membersOf, type ProcessGroup, readStats } from './cpu.ts'

/** System calls, context switches and page faults of processes with their descendants, from /proc (proc(5)). */

export const SYSTEM_COUNTS = [
  'read calls',
  'write calls',
  'voluntary switches',
  'involuntary switches',
  'minor faults',
] as const
export type SystemFigures = Readonly<Record<(typeof SYSTEM_COUNTS)[number], number>>

type Switches = { readonly voluntary: number; readonly involuntary: number }

/** The counts of the processes of a group since they began. */
export type SystemReading = {
  readonly reads: number
  readonly writes: number
  readonly faults: number
  /** By thread: unlike the other counts, those of a thread end with it. */
  readonly switches: ReadonlyMap<string, Switches>
}

/** The places of minflt and cminflt in /proc/<pid>/stat after the name of the program. */
const [FAULTS, FAULTS_OF_ENDED_CHILDREN] = [7, 8] as const

const lineOf = (text: string, name: string): number =>
  Number(new RegExp(`^${name}:\\s*(\\d+)`, 'm').exec(text)?.[1] ?? Number.NaN)

const faultsOf = (stat: string): number => {
  const fields = stat
    .slice(stat.lastIndexOf(')') + 1)
    .trim()
    .split(' ')
  return Number(fields[FAULTS]) + Number(fields[FAULTS_OF_ENDED_CHILDREN])
}

const readingOf = async (process: string): Promise<SystemReading> => {
  const [io, stat, threads] = await Promise.all([
    readFile(`${process}/io`, 'utf8'),
    readFile(`${process}/stat`, 'utf8'),
    readdir(`${process}/task`),
  ])
  const switches = await Promise.all(
    threads.map(async thread => {
      // A thread may end between the two reads.
      const status = await readFile(`${process}/task/${thread}/status`, 'utf8').catch(() => '')
      const voluntary = lineOf(status, 'voluntary_ctxt_switches') || 0
      const involuntary = lineOf(status, 'nonvoluntary_ctxt_switches') || 0
      return [thread, { voluntary, involuntary }] as const
    }),
  )
  return {
    reads: lineOf(io, 'syscr'),
    writes: lineOf(io, 'syscw'),
    faults: faultsOf(stat),
    switches: new Map(switches),
  }
}

/** Undefined on a system without /proc, or without the right to read these files of the group. */
export const readSystem = async (group: ProcessGroup, proc = '/proc'): Promise<SystemReading | undefined> => {
  const members = membersOf((await readStats(proc)) ?? [], group)
  // A process that has just ended is counted by its parent. The root's own failure is that of the whole group.
  const read = await Promise.all(members.map(({ pid }) => readingOf(`${proc}/${pid}`).catch(() => undefined)))
  if (read[0] === undefined) return undefined
  const all = read.filter(reading => reading !== undefined)
  const sum = (of: (reading: SystemReading) => number): number => all.reduce((total, each) => total + of(each), 0)
  return {
    reads: sum(({ reads }) => reads),
    writes: sum(({ writes }) => writes),
    faults: sum(({ faults }) => faults),
    switches: new Map(all.flatMap(({ switches }) => [...switches])),
  }
}

/** The counts between two readings for each of `count` operations. Threads that ended in between are left out. */
export const systemPerOperation = (before: SystemReading, after: SystemReading, count: number): SystemFigures => {
  const switches = (of: (each: Switches) => number): number =>
    [...after.switches].reduce((sum, [thread, now]) => {
      const then = before.switches.get(thread)
      return sum + of(now) - (then === undefined ? 0 : of(then))
    }, 0)
  return {
    'read calls': (after.reads - before.reads) / count,
    'write calls': (after.writes - before.writes) / count,
    'voluntary switches': switches(({ voluntary }) => voluntary) / count,
    'involuntary switches': switches(({ involuntary }) => involuntary) / count,
    'minor faults': (after.faults - before.faults) / count,
  }
}
