import { readFile } from 'node:fs/promises'
import { membersOf, PROCESSES, type ProcessGroup, type ProcessName, readStats } from './cpu.ts'

/**
 * The memory of groups of processes, from /proc/<pid>/smaps_rollup (proc(5)): the resident set of a process that is alone
 * in its group, and of several the sum of their proportional sets, in which a page that they share is counted once, such as
 * those of Postgres' shared buffers.
 */

const KIB = 1024
const [RESIDENT, PROPORTIONAL] = [/^Rss:\s+(\d+) kB$/m, /^Pss:\s+(\d+) kB$/m]

/** Zero for a process that has ended. */
const bytesOf = async (pid: number, member: RegExp, proc: string): Promise<number> => {
  const text = await readFile(`${proc}/${pid}/smaps_rollup`, 'utf8').catch(() => '')
  return Number(member.exec(text)?.[1] ?? 0) * KIB
}

/** Bytes. */
export type Memory = Readonly<Partial<Record<ProcessName, number>>>

/** The memory of each group now; nothing on a system without /proc. */
export const readMemory = async (
  groups: Partial<Record<ProcessName, ProcessGroup>>,
  proc = '/proc',
): Promise<Memory> => {
  const stats = (await readStats(proc)) ?? []
  const memory: Partial<Record<ProcessName, number>> = {}
  for (const name of PROCESSES) {
    const group = groups[name]
    const members = group === undefined ? [] : membersOf(stats, group)
    if (members.length === 0) continue
    const member = members.length === 1 ? RESIDENT : PROPORTIONAL
    const sizes = await Promise.all(members.map(({ pid }) => bytesOf(pid, member, proc)))
    memory[name] = sizes.reduce((sum, size) => sum + size, 0)
  }
  return memory
}
