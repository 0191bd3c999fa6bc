import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Allocations, allocationsOf, type HeapProfile } from './heapSummary.ts'
import { FIGURES_SUFFIX, type FiguresFile, HEAP_PHASE_END, HEAP_SUFFIX } from './profileFiles.ts'
import type { PostgresReading } from './postgresFigures.ts'
import type { SystemByProcess } from './profileReadings.ts'
import type { CallFigures, ThreadFigures } from './threadFigures.ts'

/** The figures of `--profile` beside the CPU profiles: counts for each payment, which do not need a quiet machine. */

export type StatementFigures = {
  readonly program: string
  readonly text: string
  readonly calls: number
  /** The accesses to tables in its generic plan. */
  readonly plan?: readonly string[]
}

export type ThreadAllocations = Allocations & { readonly name: string }

export type PaymentFigures = {
  readonly payments: number
  /** From the first request until the feeds have processed the last payment. */
  readonly seconds: number
  /** The busiest first; whole numbers of the phase. */
  readonly threads: readonly (Pick<ThreadFigures, 'utilization' | 'delayMs' | 'collections'> & {
    readonly name: string
  })[]
  /** For each payment; empty without /proc. */
  readonly system: SystemByProcess
  /** For each payment, with the idle time in which the backends report their counts. */
  readonly postgres: PostgresReading
  /** The counts of as much idle time, divided by the same payments: the difference belongs to payments alone. */
  readonly postgresIdle: PostgresReading
  /** For each payment, by the path of the method. */
  readonly calls: Readonly<Record<string, CallFigures>>
  /** For each payment, the most frequent first. */
  readonly statements: readonly StatementFigures[]
  /** For each payment. */
  readonly allocations: readonly ThreadAllocations[]
}

const nameOf = ({ program, pid, thread }: FiguresFile): string => `${program}-${pid}-${thread}`

const callsOf = (files: readonly FiguresFile[], payments: number): Record<string, CallFigures> => {
  const all = Map.groupBy(
    files.flatMap(({ figures }) => Object.entries(figures.calls)),
    ([path]) => path,
  )
  const totals = [...all].map(([path, entries]) => {
    const total = (of: keyof CallFigures): number => entries.reduce((sum, [, each]) => sum + each[of], 0) / payments
    const figures: CallFigures = {
      calls: total('calls'),
      messagesSent: total('messagesSent'),
      writes: total('writes'),
      bytesSent: total('bytesSent'),
      messagesReceived: total('messagesReceived'),
      chunksReceived: total('chunksReceived'),
      bytesReceived: total('bytesReceived'),
    }
    return [path, figures] as const
  })
  return Object.fromEntries(totals.toSorted(([, a], [, b]) => b.bytesReceived - a.bytesReceived))
}

const statementsOf = (files: readonly FiguresFile[], payments: number): StatementFigures[] => {
  const programs = [...Map.groupBy(files, ({ program }) => program)]
  return programs
    .flatMap(([program, threads]) => {
      const texts = Map.groupBy(
        threads.flatMap(({ figures }) => Object.entries(figures.statements)),
        ([text]) => text,
      )
      return [...texts].map(([text, counts]) => ({
        program,
        text,
        calls: counts.reduce((sum, [, count]) => sum + count, 0) / payments,
      }))
    })
    .toSorted((a, b) => b.calls - a.calls || a.text.localeCompare(b.text))
}

/** The counts of all threads in one phase, for each of `payments`. */
export const countedBy = (
  files: readonly FiguresFile[],
  payments: number,
): Pick<PaymentFigures, 'threads' | 'calls' | 'statements'> => ({
  threads: files
    .map(file => {
      const { utilization, delayMs, collections } = file.figures
      return { name: nameOf(file), utilization, delayMs, collections }
    })
    .toSorted((a, b) => b.utilization - a.utilization),
  calls: callsOf(files, payments),
  statements: statementsOf(files, payments),
})

const filesOf = async <T>(directory: string, phase: string, suffix: string): Promise<(readonly [string, T])[]> => {
  const names = (await readdir(directory)).filter(name => name.startsWith(`${phase}-`) && name.endsWith(suffix))
  return Promise.all(
    names.map(async name => {
      const content = JSON.parse(await readFile(join(directory, name), 'utf8')) as T
      return [name.slice(phase.length + 1, -suffix.length), content] as const
    }),
  )
}

/** The counts of all threads in the phase, from their files. */
export const readThreads = async (directory: string, phase: string): Promise<FiguresFile[]> =>
  (await filesOf<FiguresFile>(directory, phase, FIGURES_SUFFIX)).map(([, file]) => file)

/** The allocations of each thread in the heap phase that belongs to `phase`, for each of `payments`. */
export const readAllocations = async (
  { directory, root }: { readonly directory: string; readonly root: string },
  phase: string,
  payments: number,
): Promise<ThreadAllocations[]> => {
  const profiles = await filesOf<HeapProfile>(directory, `${phase}${HEAP_PHASE_END}`, HEAP_SUFFIX)
  return profiles
    .map(([name, profile]) => {
      const { bytes, functions } = allocationsOf(profile, root)
      const each = functions.map(allocated => ({ name: allocated.name, bytes: allocated.bytes / payments }))
      return { name, bytes: bytes / payments, functions: each }
    })
    .toSorted((a, b) => b.bytes - a.bytes)
}
