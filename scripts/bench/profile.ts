import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { callerOf, type Caller, PARTS_PER_INVOICE } from './apiClient.ts'
import { createHarness, type Harness, type RunningService } from './harness.ts'
import { perSecond } from './measure.ts'
import { partsOf, pay } from './paymentSides.ts'
import { PHASE_FILE, PROFILE_SUFFIX, PROFILES_VARIABLE, type ProfiledThread, THREAD_SUFFIX } from './profileFiles.ts'
import { type CpuProfile, summaryOf, summaryText } from './profileSummary.ts'

/** `npm run bench -- --profile`: CPU profiles of the service's processes while payments are made. */

const ROOT = new URL('../../', import.meta.url).href
const PROFILER = new URL('./profiler.ts', import.meta.url).href
const CONNECTIONS = [1, 64] as const
const PER_SECOND_MAX: Readonly<Record<number, number>> = { 1: 600, 64: 2_400 }
const WARM_SECONDS = 2
const FOLLOW_MAX_MS = 30_000
const FOLLOW_POLL_MS = 50

type Profiling = {
  readonly harness: Harness
  readonly service: RunningService
  readonly caller: Caller
  readonly directory: string
  readonly seconds: number
}

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const threadsIn = async (directory: string): Promise<ProfiledThread[]> => {
  const files = (await readdir(directory)).filter(name => name.endsWith(THREAD_SUFFIX))
  const texts = await Promise.all(files.map(name => readFile(join(directory, name), 'utf8')))
  return texts.map(text => JSON.parse(text) as ProfiledThread).filter(({ pid }) => isAlive(pid))
}

/** Resolves when every thread has followed: an earlier profile is then complete. */
export const enterPhase = async (directory: string, phase: string): Promise<void> => {
  await writeFile(join(directory, PHASE_FILE), phase)
  const deadline = performance.now() + FOLLOW_MAX_MS
  for (;;) {
    const behind = (await threadsIn(directory)).filter(thread => thread.phase !== phase)
    if (behind.length === 0) return
    if (performance.now() > deadline)
      throw new Error(`No profile from ${behind.map(({ program, pid }) => `${program} (${pid})`).join(', ')}.`)
    await sleep(FOLLOW_POLL_MS)
  }
}

const profileAt = async ({ harness, service, caller, directory, seconds }: Profiling, connections: number) => {
  const phase = `payments-${connections}`
  const invoices = ((PER_SECOND_MAX[connections] ?? 0) * (WARM_SECONDS + seconds)) / PARTS_PER_INVOICE
  harness.log(`preparing approved invoices for ${connections} connections`)
  const next = partsOf(await caller.invoices(Math.ceil(invoices) + connections), connections, true)
  await caller.untilFeedsCaughtUp()
  const side = pay(service.addresses, caller, connections, next)
  await side(WARM_SECONDS)
  harness.log(`profiling POST /payments at ${connections}`)
  await enterPhase(directory, phase)
  const sample = await side(seconds)
  await enterPhase(directory, '')
  await caller.checkAnswers()
  return { phase, rate: perSecond(sample) }
}

/** The summaries of all profiles of a phase, the busiest process first. */
const summariesOf = async (directory: string, phase: string): Promise<string[]> => {
  const files = (await readdir(directory)).filter(name => name.startsWith(`${phase}-`) && name.endsWith(PROFILE_SUFFIX))
  const summaries = await Promise.all(
    files.map(async name => {
      const profile = JSON.parse(await readFile(join(directory, name), 'utf8')) as CpuProfile
      return { name, summary: summaryOf(profile, ROOT) }
    }),
  )
  return summaries
    .toSorted((a, b) => b.summary.busyMs - a.summary.busyMs)
    .map(({ name, summary }) => summaryText(name.slice(0, -PROFILE_SUFFIX.length), summary))
}

const removeFiles = async (directory: string, ends: readonly string[]): Promise<void> => {
  for (const name of await readdir(directory)) if (ends.some(end => name.endsWith(end))) await rm(join(directory, name))
}

export type ProfileRun = {
  readonly directory: string
  readonly seconds: number
  readonly log: (line: string) => void
  readonly print: (text: string) => void
  /** Called with the release of everything that runs. */
  readonly onStart: (harness: Harness) => void
}

/** Writes the profiles into `directory` and prints a summary for each process and number of connections. */
export const profilePayments = async ({ directory, seconds, log, print, onStart }: ProfileRun): Promise<void> => {
  await mkdir(directory, { recursive: true })
  // Profiles of an earlier run are removed, so that the folder has those of one run.
  await removeFiles(directory, [PHASE_FILE, THREAD_SUFFIX, PROFILE_SUFFIX])
  const earlier = process.env['NODE_OPTIONS'] ?? ''
  const serviceEnv = { NODE_OPTIONS: `${earlier} --import ${PROFILER}`.trim(), [PROFILES_VARIABLE]: directory }
  const harness = await createHarness(log, { serviceEnv })
  onStart(harness)
  try {
    const service = await harness.service()
    const profiling = { harness, service, caller: await callerOf(service), directory, seconds }
    for (const connections of CONNECTIONS) {
      const { phase, rate } = await profileAt(profiling, connections)
      print(`\nPOST /payments at ${connections} connections, while profiled: ${rate.toFixed(0)}/s`)
      for (const summary of await summariesOf(directory, phase)) print(`\n${summary}`)
    }
  } finally {
    await harness.stop()
    await removeFiles(directory, [PHASE_FILE, THREAD_SUFFIX])
  }
  print(`\nThe profiles are in ${directory}; Chrome's DevTools open them.`)
}
