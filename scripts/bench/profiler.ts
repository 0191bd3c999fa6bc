/**
 * Loaded into each process of the service by `--profile` (`--import`): records CPU profiles of this thread with its
 * counts, or samples of its allocations, one for each phase. The name of the present phase is in a file that the driver
 * writes, since signals end the service. The driver knows by the `.thread` file that this thread has followed.
 */

import { existsSync } from 'node:fs'
import { readFile, rename, writeFile } from 'node:fs/promises'
import { Session } from 'node:inspector/promises'
import { basename, dirname, join } from 'node:path'
import { threadId } from 'node:worker_threads'
import {
  FIGURES_SUFFIX,
  type FiguresFile,
  HEAP_PHASE_END,
  HEAP_SUFFIX,
  PHASE_FILE,
  PROFILE_SUFFIX,
  PROFILES_VARIABLE,
  type ProfiledThread,
  THREAD_SUFFIX,
} from './profileFiles.ts'
import { countThread, type ThreadCounter } from './threadFigures.ts'

/** Rare, since this thread's own reads are in the profile. */
const POLL_MS = 250
const SAMPLING_US = 500
/** One sample of allocations for so many bytes. Those that are collected during the phase are kept, unlike by default. */
const HEAP_SAMPLING = {
  samplingInterval: 64 * 1024,
  includeObjectsCollectedByMajorGC: true,
  includeObjectsCollectedByMinorGC: true,
}

const directory = process.env[PROFILES_VARIABLE]
const script = process.argv[1] ?? 'node'
const program = `${basename(dirname(script))}-${basename(script, '.ts')}`
const name = `${program}-${process.pid}-${threadId}`

const save = async (file: string, content: object): Promise<void> => {
  if (directory === undefined) return
  await writeFile(join(directory, `${file}.new`), JSON.stringify(content))
  await rename(join(directory, `${file}.new`), join(directory, file))
}

const session = new Session()
let phase = ''

const begin = async (counter: ThreadCounter): Promise<void> => {
  if (phase.endsWith(HEAP_PHASE_END)) return session.post('HeapProfiler.startSampling', HEAP_SAMPLING)
  await session.post('Profiler.start')
  counter.start()
}

const end = async (counter: ThreadCounter): Promise<void> => {
  if (phase.endsWith(HEAP_PHASE_END)) {
    const { profile } = await session.post('HeapProfiler.stopSampling')
    return save(`${phase}-${name}${HEAP_SUFFIX}`, profile)
  }
  const file: FiguresFile = { pid: process.pid, thread: threadId, program, phase, figures: counter.stop() }
  const { profile } = await session.post('Profiler.stop')
  await save(`${phase}-${name}${PROFILE_SUFFIX}`, profile)
  await save(`${phase}-${name}${FIGURES_SUFFIX}`, file)
}

const follow = async (wanted: string, counter: ThreadCounter): Promise<void> => {
  if (phase !== '') await end(counter)
  phase = wanted
  if (phase !== '') await begin(counter)
  const state: ProfiledThread = { pid: process.pid, program, phase }
  await save(`${name}${THREAD_SUFFIX}`, state)
}

const poll = async (file: string, counter: ThreadCounter): Promise<void> => {
  const wanted = await readFile(file, 'utf8').catch(() => '')
  if (wanted !== phase) await follow(wanted, counter)
  setTimeout(() => void poll(file, counter), POLL_MS).unref()
}

if (directory !== undefined && existsSync(directory)) {
  const counter = countThread()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.setSamplingInterval', { interval: SAMPLING_US })
  await follow('', counter)
  void poll(join(directory, PHASE_FILE), counter)
}
