import { readFile } from 'node:fs/promises'
import { membersOf, PROCESSES, type ProcessGroup, type ProcessName, readStats } from './cpu.ts'

/**
 * The memory of groups of processes, from /proc/<pid>/smaps_rollup (proc(5)): the resident set of a process that is
 * alone in its group, and of several the sum of their proportional sets, in which a page that they share is counted
 * once.
 */

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
