import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CleanupStack } from '../../src/lib/cleanupStack.ts'
import { MANIFEST_TOPICS } from '../../projections/factTopics.ts'
import { createApi } from '../../scripts/ledger/consume/api.ts'
import { openCopy } from '../../scripts/ledger/consume/copy.ts'
import { consumeHttp } from '../../scripts/ledger/consume/http.ts'
import { type Ended, run } from '../scripts/cli.ts'
import { eventually } from '../support/eventually.ts'
import type { Build } from '../support/builds.ts'
import { runChecks } from './checks.ts'
import { openPlace, type Place } from './instances.ts'
import { type Load, startLoad } from './load.ts'
import { createRequests, describeFailures } from './requests.ts'
import { type Servers, startServers } from './servers.ts'

/**
 * The rehearsal: two builds on one log and one Postgres, under load. Two instances of the API and two of the feeds are
 * replaced one after the other:
 *
 *   from ──▶ to ──▶ from ──▶ half way, and there for some time ──▶ to
 *
 * Forward the feeds are first, back the API is: a feed must know every event that an API may write.
 */

export type Rehearsal = {
  readonly from: Build
  readonly to: Build
  readonly halfWayMs: number
  readonly folder: string
  readonly signal: AbortSignal
  readonly report: (line: string) => void
}

const secondsOf = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`
const WARM_UP_MS = 5_000
const DOCTOR_MAX_MS = 240_000
const RESTART_MAX_MS = 120_000

/** Settings that all instances share. */
const sharedSettings = ({ settings }: Servers, folder: string) => {
  const { privateKey } = generateKeyPairSync('ed25519')
  return {
    ...settings,
    PUBLIC_URL: 'http://localhost:8080',
    API_KEY_PEPPER: randomBytes(32).toString('hex'),
    EVIDENCE_SIGNING_KEY: privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64'),
    EVIDENCE_HEADS_FILE: join(folder, 'heads.jsonl'),
    EVIDENCE_HEADS_EVERY: '1s',
  }
}

const openPlaces = async (
  settings: Readonly<Record<string, string>>,
  { folder, signal }: Rehearsal,
  cleanup: CleanupStack,
) => {
  const place = (role: 'api' | 'feeds', number: number): Promise<Place> =>
    openPlace({ name: `${role}-${number}`, role, folder, settings, signal }, cleanup)
  const feeds = [await place('feeds', 1), await place('feeds', 2)] as const
  const api = [await place('api', 1), await place('api', 2)] as const
  return { feeds, api }
}

type Phase = { readonly title: string; readonly steps: readonly (readonly [Place, Build])[]; readonly stayMs?: number }

const phasesOf = (
  { feeds: [feeds1, feeds2], api: [api1, api2] }: Awaited<ReturnType<typeof openPlaces>>,
  { from, to, halfWayMs }: Rehearsal,
): readonly Phase[] => {
  const all = (build: Build, places: readonly Place[]) => places.map(place => [place, build] as const)
  return [
    { title: 'forward, feeds first', steps: all(to, [feeds1, feeds2, api1, api2]) },
    { title: 'back, API first', steps: all(from, [api1, api2, feeds1, feeds2]) },
    { title: 'half way, one old and one new of each', steps: all(to, [feeds1, api1]), stayMs: halfWayMs },
    { title: 'forward again', steps: all(to, [feeds2, api2]) },
  ]
}

/** Resolves when the doctor finds nothing, as an operator waits between two steps. */
const untilHealthy = async (settings: Readonly<Record<string, string>>): Promise<void> => {
  let last: Ended | undefined
  await eventually(async () => {
    last = await run('ledger.ts', ['doctor'], settings)
    return last.code === 0
  }, DOCTOR_MAX_MS).catch(() => {
    throw new Error(`The doctor still has findings:\n${last?.stdout}${last?.stderr}`)
  })
}

const replaceAll = async (
  { title, steps, stayMs }: Phase,
  { signal, report }: Rehearsal,
  settings: Readonly<Record<string, string>>,
): Promise<void> => {
  report(`${title}:`)
  for (const [place, build] of steps) {
    const before = place.build()?.name ?? 'nothing'
    const { endedAfterMs, readyAfterMs } = await place.replaceBy(build)
    report(
      `  ${place.name}: ${before} ended after ${secondsOf(endedAfterMs)}, ${build.name} ready after ${secondsOf(readyAfterMs)}`,
    )
    signal.throwIfAborted()
  }
  if (stayMs !== undefined) {
    await sleep(stayMs, undefined, { signal })
    report(`  stayed for ${secondsOf(stayMs)}`)
  }
  const beganMs = performance.now()
  await untilHealthy(settings)
  report(`  the doctor found nothing after ${secondsOf(performance.now() - beganMs)}`)
}

/** A copy over HTTP that follows one instance. The function that ends it rejects with the error that ended it before. */
const followCopy = async (folder: string, api: string, { token }: Load, signal: AbortSignal) => {
  const stop = new AbortController()
  const stopping = AbortSignal.any([signal, stop.signal])
  const copy = await openCopy(folder, { from: 'http', topics: undefined }, MANIFEST_TOPICS)
  const source = createApi({ api, token, signal: stopping, retryMaxMs: RESTART_MAX_MS })
  const none = (): void => undefined
  const reading = { api: source, copy, follow: true, signal: stopping, onProgress: none, onExpiredCursor: none }
  const ended = consumeHttp(reading).catch((error: unknown) => {
    if (!stopping.aborted) throw error
  })
  ended.catch(none)
  return async (): Promise<void> => {
    stop.abort()
    await ended.finally(() => copy.close())
  }
}

/** Resolves to the findings, none when all is well. */
export const rehearse = async (rehearsal: Rehearsal, cleanup: CleanupStack): Promise<readonly string[]> => {
  const { from, to, folder, signal, report } = rehearsal
  const beganMs = performance.now()
  const dataDir = join(folder, 'servers')
  const broken = Promise.withResolvers<never>()
  broken.promise.catch(() => undefined)
  const servers = await startServers({ dataDir, withKafka: true, fail: broken.reject }, cleanup)
  report(
    `event store, Postgres${servers.hasKafka ? ', Kafka' : ' (no Kafka: it cannot be started here)'} and issuer are ready`,
  )
  const settings = sharedSettings(servers, folder)
  const places = await openPlaces(settings, rehearsal, cleanup)
  for (const place of [...places.feeds, ...places.api]) await place.replaceBy(from)
  report(`two instances of the API and two of the feeds run ${from.name}; from here on under load`)
  const [first, second] = places.api
  const commands = { ...settings, LEDGER_DATA_DIR: dataDir, PORT: new URL(first.api).port, METRICS_PORT: 'off' }
  const requests = createRequests([first.api, second.api])
  const copies = { http: join(folder, 'copy'), kafka: join(folder, 'copy-kafka') }
  const load = await startLoad({ requests, issuer: servers.issuer, dataDir, signal })
  const endCopy = await followCopy(copies.http, first.api, load, signal)
  const roll = async (): Promise<void> => {
    await sleep(WARM_UP_MS, undefined, { signal })
    for (const phase of phasesOf(places, rehearsal)) await replaceAll(phase, rehearsal, commands)
  }
  await Promise.race([roll(), broken.promise, load.failed])
  await load.end()
  await endCopy()
  const failures = describeFailures(requests.counts)
  report(
    `${requests.counts.requests} requests for ${load.runs.length} invoices; the event stream was opened ${load.streamed.connections} times`,
  )
  for (const line of failures.lines) report(line)
  const findings = [...failures.findings]
  const { EVENTSTORE_URL: eventStoreUrl } = servers.settings
  const checked = { load, settings: commands, eventStoreUrl: String(eventStoreUrl), copies, api: first.api }
  for await (const check of runChecks({ ...checked, hasKafka: servers.hasKafka })) {
    report(`${check.findings.length === 0 ? 'ok     ' : 'FINDING'} ${check.name}: ${check.detail}`)
    findings.push(...check.findings)
    signal.throwIfAborted()
  }
  const took = secondsOf(performance.now() - beganMs)
  report(
    `${from.name} → ${to.name}: ${findings.length === 0 ? 'nothing lost, nothing doubled' : `${findings.length} findings`}, in ${took}`,
  )
  return findings
}
