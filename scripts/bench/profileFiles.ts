/** The files by which the driver of `--profile` and the profiled threads communicate, in one directory. */

import type { ThreadFigures } from './threadFigures.ts'

/** The environment variable with the directory. */
export const PROFILES_VARIABLE = 'BENCH_PROFILES'
/** Contains the name of the present phase; empty between two phases. */
export const PHASE_FILE = 'phase'
/** The end of the name of a phase in which allocations are sampled in place of CPU time. */
export const HEAP_PHASE_END = '-heap'
/** The end of the name of a file that a thread writes after it has followed the phase. */
export const THREAD_SUFFIX = '.thread'
export const PROFILE_SUFFIX = '.cpuprofile'
export const HEAP_SUFFIX = '.heapprofile'
/** The counts of a thread in a phase. The driver gathers them in one file, and removes these. */
export const FIGURES_SUFFIX = '.figures'

export type ProfiledThread = { readonly pid: number; readonly program: string; readonly phase: string }
export type FiguresFile = ProfiledThread & { readonly thread: number; readonly figures: ThreadFigures }
