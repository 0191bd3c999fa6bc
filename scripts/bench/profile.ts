import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { callerOf, type Caller, PARTS_PER_INVOICE } from './apiClient.ts'
import { createHarness, type Harness, type RunningService } from './harness.ts'
import { perSecond, type Sample, type Side } from './measure.ts'
import { partsOf, pay } from './paymentSides.ts'
import { databasesOf, plansOf, postgresPerOperation } from './postgresFigures.ts'
import {
  countedBy,
  type PaymentFigures,
  readAllocations,
  readThreads,
  type StatementFigures,
} from './profileFigures.ts'
import {
  FIGURES_SUFFIX,
  HEAP_PHASE_END,
  HEAP_SUFFIX,
  PHASE_FILE,
  PROFILE_SUFFIX,
  PROFILES_VARIABLE,
  type ProfiledThread,
  THREAD_SUFFIX,
} from './profileFiles.ts'
import { readProcesses, readSettledPostgres, systemBetween } from './profileReadings.ts'
import { type CpuProfile, summaryOf, summaryText } from './profileSummary.ts'
import { figuresText } from './profileTables.ts'

/** `npm run bench -- --profile`: profiles of the service's processes while payments are made, with counts for each. */

const ROOT = new URL('../../', import.meta.url).href
const PROFILER = new URL('./profiler.ts', import.meta.url).href
const CONNECTIONS = [1, 64] as const
const PER_SECOND_MAX: Readonly<Record<number, number>> = { 1: 600, 64: 2_400 }
const WARM_SECONDS = 2
/** How long allocations are sampled, as a share of the time of the CPU profile. */
const HEAP_SHARE = 1 / 3
/** The number of statements whose plans are read. */
const PLANS_MAX = 40
const TEMPORARY = [PHASE_FILE, THREAD_SUFFIX, FIGURES_SUFFIX]
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

const untilProcessed = async (caller: Caller, side: () => Promise<Sample>) => {
  const begun = performance.now()
  const sample = await side()
  await caller.untilFeedsCaughtUp()
  return { sample, seconds: (performance.now() - begun) / 1000 }
}

type Phase = { readonly name: string; readonly side: Side }

const withPlans = async (databases: readonly string[], statements: readonly StatementFigures[]) => {
  const texts = statements.slice(0, PLANS_MAX).map(({ text }) => text)
  const plans = await plansOf(databases, texts)
  return statements.map(each => ({ ...each, plan: plans.get(each.text) ?? [] }))
}

/** CPU profiles, and everything that is counted beside them. */
const profileCpu = async ({ caller, service, directory, seconds }: Profiling, { name, side }: Phase) => {
  await caller.untilFeedsCaughtUp()
  const databases = await databasesOf(service.addresses.postgres)
  const postgresBefore = await readSettledPostgres(databases)
  await enterPhase(directory, name)
  const systemBefore = await readProcesses(service)
  const processed = await untilProcessed(caller, () => side(seconds))
  const { count: payments } = processed.sample
  const system = systemBetween(systemBefore, await readProcesses(service), payments)
  await enterPhase(directory, '')
  const postgresAfter = await readSettledPostgres(databases)
  const postgres = postgresPerOperation(postgresBefore, postgresAfter, payments)
  const postgresIdle = postgresPerOperation(postgresAfter, await readSettledPostgres(databases), payments)
  await caller.checkAnswers()
  const counted = countedBy(await readThreads(directory, name), payments)
  const statements = await withPlans(databases, counted.statements)
  return { ...counted, system, postgres, postgresIdle, statements, payments, ...processed }
}

/** Samples of allocations, in a phase of their own: taken at the same time, they would be in the CPU profile. */
const profileHeap = async ({ caller, directory, seconds }: Profiling, { name, side }: Phase) => {
  await enterPhase(directory, `${name}${HEAP_PHASE_END}`)
  const { sample } = await untilProcessed(caller, () => side(seconds * HEAP_SHARE))
  await enterPhase(directory, '')
  await caller.checkAnswers()
  return readAllocations({ directory, root: ROOT }, name, sample.count)
}

const profileAt = async (profiling: Profiling, connections: number) => {
  const { harness, service, caller, directory, seconds } = profiling
  const name = `payments-${connections}`
  const paidSeconds = WARM_SECONDS + seconds * (1 + HEAP_SHARE)
  const invoices = ((PER_SECOND_MAX[connections] ?? 0) * paidSeconds) / PARTS_PER_INVOICE
  harness.log(`preparing approved invoices for ${connections} connections`)
  const next = partsOf(await caller.invoices(Math.ceil(invoices) + connections), connections, true)
  await caller.untilFeedsCaughtUp()
  const phase = { name, side: pay(service.addresses, caller, { connections, next }) }
  await phase.side(WARM_SECONDS)
  harness.log(`profiling POST /payments at ${connections}`)
  const { sample, ...counted } = await profileCpu(profiling, phase)
  harness.log(`sampling the allocations of POST /payments at ${connections}`)
  const figures: PaymentFigures = { ...counted, allocations: await profileHeap(profiling, phase) }
  await writeFile(join(directory, `${name}.json`), `${JSON.stringify(figures, null, 2)}\n`)
  return { name, rate: perSecond(sample), figures }
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
  await removeFiles(directory, [...TEMPORARY, PROFILE_SUFFIX, HEAP_SUFFIX, '.json'])
  const earlier = process.env['NODE_OPTIONS'] ?? ''
  const serviceEnv = { NODE_OPTIONS: `${earlier} --import ${PROFILER}`.trim(), [PROFILES_VARIABLE]: directory }
  const harness = await createHarness(log, { serviceEnv })
  onStart(harness)
  try {
    const service = await harness.service()
    const profiling = { harness, service, caller: await callerOf(service), directory, seconds }
    for (const connections of CONNECTIONS) {
      const { name, rate, figures } = await profileAt(profiling, connections)
      print(`\nPOST /payments at ${connections} connections, while profiled: ${rate.toFixed(0)}/s`)
      for (const summary of await summariesOf(directory, name)) print(`\n${summary}`)
      print(`\n${figuresText(name, figures)}`)
    }
  } finally {
    await harness.stop()
    await removeFiles(directory, TEMPORARY)
  }
  print(`\nThe profiles and all figures (JSON) are in ${directory}; Chrome's DevTools open them.`)
}
