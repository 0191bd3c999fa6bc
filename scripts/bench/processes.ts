import { readdir, readFile } from 'node:fs/promises'
import type { Addresses } from '../../src/compose/addressesFile.ts'

/** The CPU time and the memory of processes with their descendants, from /proc (proc(5)). */

/** The unit of the times in /proc: Linux reports hundredths of a second on every architecture that Node runs on. */
const MS_PER_TICK = 10
/** The positions of ppid, utime, stime, cutime and cstime after the name of the program. */
const [PARENT, USER, SYSTEM, CHILDREN_USER, CHILDREN_SYSTEM] = [1, 11, 12, 13, 14] as const

export const statOf = (text: string) => {
  // The name stands in parentheses and may contain spaces and parentheses.
  const fields = text
    .slice(text.lastIndexOf(')') + 1)
    .trim()
    .split(' ')
    .map(Number)
  const ticks = (...places: readonly number[]): number =>
    places.reduce((sum, place) => sum + (fields[place] ?? Number.NaN), 0)
  return {
    pid: Number.parseInt(text, 10),
    parent: ticks(PARENT),
    /** User and system time of the process itself. */
    ownMs: MS_PER_TICK * ticks(USER, SYSTEM),
    /** That of its descendants that have ended and were waited for. */
    endedChildrenMs: MS_PER_TICK * ticks(CHILDREN_USER, CHILDREN_SYSTEM),
  }
}

type ProcessStat = ReturnType<typeof statOf>

/** The processes whose time is counted together: `root` and its descendants, without those below `without`. */
export type ProcessGroup = { readonly root: number; readonly without?: readonly number[]; readonly alone?: boolean }

/** The processes of a group; none if its root has ended. */
const membersOf = (
  stats: readonly ProcessStat[],
  { root, without = [], alone = false }: ProcessGroup,
): readonly ProcessStat[] => {
  const children = Map.groupBy(stats, ({ parent }) => parent)
  const withDescendants = (stat: ProcessStat): ProcessStat[] => [
    stat,
    ...(children.get(stat.pid) ?? []).filter(({ pid }) => !without.includes(pid)).flatMap(withDescendants),
  ]
  return stats.filter(({ pid }) => pid === root).flatMap(stat => (alone ? [stat] : withDescendants(stat)))
}

/** The CPU time of a group. A process that has ended is counted by the parent that waited for it. */
export const cpuMsOf = (stats: readonly ProcessStat[], group: ProcessGroup): number => {
  const members = membersOf(stats, group)
  if (members.length === 0) return Number.NaN
  return members.reduce((sum, stat) => sum + stat.ownMs + (group.alone === true ? 0 : stat.endedChildrenMs), 0)
}

/** All processes; undefined on a system without /proc. */
export const readStats = async (proc = '/proc'): Promise<ProcessStat[] | undefined> => {
  const entries = await readdir(proc).catch(() => undefined)
  const pids = entries?.filter(name => /^\d+$/.test(name)) ?? []
  // A process may end between the two reads.
  const texts = await Promise.all(pids.map(pid => readFile(`${proc}/${pid}/stat`, 'utf8').catch(() => '')))
  const stats = texts.filter(text => text !== '').map(statOf)
  return stats.length > 0 ? stats : undefined
}

export const PROCESSES = ['service', 'event store', 'Postgres', 'Kafka', 'load generator'] as const
export type ProcessName = (typeof PROCESSES)[number]
/** Milliseconds of CPU. */
export type Cpu = Readonly<Partial<Record<ProcessName, number>>>

export const COUNTED: readonly ProcessName[] = ['service', 'event store', 'Postgres']

export const totalOf = (cpu: Cpu): number => COUNTED.reduce((sum, name) => sum + (cpu[name] ?? 0), 0)

/** The service without its embedded dependencies, which are children of its process. */
export const processGroups = (
  pids: Addresses['pids'],
  kafka: number | undefined,
): Partial<Record<ProcessName, ProcessGroup>> => {
  const { service, eventstore, postgres } = pids
  const embedded = [eventstore, postgres].filter(pid => pid !== undefined)
  return {
    ...(service !== undefined && { service: { root: service, without: embedded } }),
    ...(eventstore !== undefined && { 'event store': { root: eventstore } }),
    ...(postgres !== undefined && { Postgres: { root: postgres } }),
    ...(kafka !== undefined && { Kafka: { root: kafka } }),
    'load generator': { root: process.pid, alone: true },
  }
}

export type CpuMeter = () => Promise<Cpu>

/** The CPU time of each process so far; undefined, after logging the reason, on a system without /proc. */
export const openCpuMeter = async (
  groups: Partial<Record<ProcessName, ProcessGroup>>,
  log: (line: string) => void,
  proc?: string,
): Promise<CpuMeter | undefined> => {
  if ((await readStats(proc)) === undefined) {
    log('No CPU rows: this system has no /proc, from which the times of other processes are read.')
    return undefined
  }
  return async () => {
    const stats = (await readStats(proc)) ?? []
    const named = PROCESSES.flatMap(name => {
      const group = groups[name]
      return group === undefined ? [] : [[name, cpuMsOf(stats, group)] as const]
    })
    return Object.fromEntries(named)
  }
}

/** The CPU time of each process between two readings, for each of `count` operations. */
export const cpuPerOperation = (before: Cpu, after: Cpu, count: number): Cpu =>
  Object.fromEntries(
    PROCESSES.flatMap(name => {
      const [from, to] = [before[name], after[name]]
      return from === undefined || to === undefined ? [] : [[name, (to - from) / count] as const]
    }),
  )

// --- Memory: the resident set of one process, the sum of the proportional sets of several (smaps_rollup, proc(5))

const KIB = 1024
const RESIDENT = /^Rss:\s+(\d+) kB$/m
const PROPORTIONAL = /^Pss:\s+(\d+) kB$/m
const SHARED = /^Pss_Shmem:\s+(\d+) kB$/m

/** Bytes. `cache`: the memory that the processes share, which is Postgres' cache of pages (shared_buffers). */
export type GroupMemory = { readonly own: number; readonly cache: number }
export type Memory = Readonly<Partial<Record<ProcessName, GroupMemory>>>

const memoryOf = async (pids: readonly number[], proc: string): Promise<GroupMemory> => {
  // A process that has ended has no file.
  const texts = await Promise.all(pids.map(pid => readFile(`${proc}/${pid}/smaps_rollup`, 'utf8').catch(() => '')))
  const sumOf = (member: RegExp): number =>
    texts.reduce((sum, text) => sum + Number(member.exec(text)?.[1] ?? 0) * KIB, 0)
  const cache = sumOf(SHARED)
  return { own: sumOf(pids.length === 1 ? RESIDENT : PROPORTIONAL) - cache, cache }
}

/** The memory of each group now; nothing on a system without /proc. */
export const readMemory = async (
  groups: Partial<Record<ProcessName, ProcessGroup>>,
  proc = '/proc',
): Promise<Memory> => {
  const stats = (await readStats(proc)) ?? []
  const memory: Partial<Record<ProcessName, GroupMemory>> = {}
  for (const name of PROCESSES) {
    const group = groups[name]
    const pids = group === undefined ? [] : membersOf(stats, group).map(({ pid }) => pid)
    if (pids.length > 0) memory[name] = await memoryOf(pids, proc)
  }
  return memory
}
