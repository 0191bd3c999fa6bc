/**
 * Loaded into each process of the service by `--profile` (`--import`): records CPU profiles of this thread, one for
 * each phase. The name of the present phase is in a file that the driver writes, since signals end the service. The
 * driver knows by the `.thread` file that this thread has followed.
 */

import { existsSync } from 'node:fs'
import { readFile, rename, writeFile } from 'node:fs/promises'
import { Session } from 'node:inspector/promises'
import { basename, dirname, join } from 'node:path'
import { threadId } from 'node:worker_threads'
import { PHASE_FILE, PROFILES_VARIABLE, type ProfiledThread, THREAD_SUFFIX } from './profileFiles.ts'

/** Rare, since this thread's own reads are in the profile. */
const POLL_MS = 250
const SAMPLING_US = 500

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

const follow = async (wanted: string): Promise<void> => {
  if (phase !== '') {
    const { profile } = await session.post('Profiler.stop')
    await save(`${phase}-${name}.cpuprofile`, profile)
  }
  if (wanted !== '') await session.post('Profiler.start')
  phase = wanted
  const state: ProfiledThread = { pid: process.pid, program, phase }
  await save(`${name}${THREAD_SUFFIX}`, state)
}

const poll = async (file: string): Promise<void> => {
  const wanted = await readFile(file, 'utf8').catch(() => '')
  if (wanted !== phase) await follow(wanted)
  setTimeout(() => void poll(file), POLL_MS).unref()
}

if (directory !== undefined && existsSync(directory)) {
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.setSamplingInterval', { interval: SAMPLING_US })
  await follow('')
  void poll(join(directory, PHASE_FILE))
}
