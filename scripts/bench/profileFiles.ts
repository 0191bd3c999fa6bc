/** The files by which the driver of `--profile` and the profiled threads communicate, in one directory. */

/** The environment variable with the directory. */
export const PROFILES_VARIABLE = 'BENCH_PROFILES'
/** Contains the name of the present phase; empty between two phases. */
export const PHASE_FILE = 'phase'
/** The end of the name of a file that a thread writes after it has followed the phase. */
export const THREAD_SUFFIX = '.thread'
export const PROFILE_SUFFIX = '.cpuprofile'

export type ProfiledThread = { readonly pid: number; readonly program: string; readonly phase: string }
