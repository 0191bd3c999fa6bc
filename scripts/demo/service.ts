import { type ChildProcess, spawn } from 'node:child_process'
import { open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { createFolders } from '../../src/lib/folders.ts'
import { type Addresses, readAddresses } from '../../src/compose/addressesFile.ts'
import type { Config } from '../../src/settings/config.ts'
import { endProcess, hasEnded } from '../../src/childProcesses/endProcess.ts'
import { directoryRefusal } from '../../src/embedded/dataDirectory.ts'
import { StartupError } from '../../src/lib/startupError.ts'

const STOP_MAX_MS = 20_000
const root = new URL('../../', import.meta.url)
const START_MAX_MS = 90_000
const POLL_MS = 100
const LAST_OUTPUT_LINES = 20
/** Limits far above the defaults, since the demo sends in seconds what clients would send in days. */
const RATE_LIMITS = 'default=600000/60,payments=60000/60'
const OUTPUT_FILE = 'demo-service.log'

const manifestSchema = z.object({ scripts: z.object({ start: z.string().startsWith('node ') }) })

/** The command of `npm start` without npm, which does not forward signals in time. */
const startArguments = async (): Promise<readonly string[]> => {
  const manifest: unknown = JSON.parse(await readFile(new URL('package.json', root), 'utf8'))
  return manifestSchema.parse(manifest).scripts.start.split(' ').slice(1)
}

/** In a process group of its own, so that Ctrl-C reaches the demo only; its output is a file, so that it can stay. */
const spawnService = async (config: Config, port: number): Promise<ChildProcess> => {
  const { dataDir } = config
  await createFolders(dataDir).catch((error: unknown) => {
    throw directoryRefusal(dataDir, error)
  })
  const output = await open(join(dataDir, OUTPUT_FILE), 'w')
  try {
    return spawn(process.execPath, await startArguments(), {
      cwd: fileURLToPath(root),
      env: { RATE_LIMITS, ...process.env, LEDGER_DATA_DIR: dataDir, PORT: String(port) },
      detached: true,
      stdio: ['ignore', output.fd, output.fd],
    })
  } finally {
    await output.close()
  }
}

const lastOutput = async (dataDir: string): Promise<string> => {
  const output = await readFile(join(dataDir, OUTPUT_FILE), 'utf8').catch(() => '')
  return output.trim().split('\n').slice(-LAST_OUTPUT_LINES).join('\n')
}

/** The service writes its address file just before `ready`. A file left by a killed service has another pid. */
const untilReady = async (child: ChildProcess, { dataDir }: Config, signal: AbortSignal): Promise<Addresses> => {
  const deadlineMs = performance.now() + START_MAX_MS
  for (;;) {
    const addresses = await readAddresses(dataDir).catch(() => undefined)
    if (addresses?.pids['service'] === child.pid && addresses !== undefined) return addresses
    if (hasEnded(child)) throw new StartupError(`The service did not start:\n${await lastOutput(dataDir)}`)
    if (performance.now() > deadlineMs) throw new StartupError(`The service was not ready in ${START_MAX_MS} ms.`)
    await sleep(POLL_MS, undefined, { signal })
  }
}

/** Started if it does not run; `stop` ends one that was started here alone. Throws a StartupError. */
export const findOrStart = async (
  config: Config,
  options: { readonly port: number; readonly signal: AbortSignal; readonly onStarting: () => void },
) => {
  const running = await readAddresses(config.dataDir)
  if (running) return { addresses: running, startedHere: false, stop: async () => undefined }
  options.onStarting()
  const child = await spawnService(config, options.port)
  const stop = (): Promise<void> => endProcess(child, 'SIGTERM', STOP_MAX_MS)
  const failed = new Promise<never>((_, reject) => child.once('error', reject))
  try {
    const addresses = await Promise.race([untilReady(child, config, options.signal), failed])
    child.unref()
    return { addresses, startedHere: true, stop }
  } catch (error) {
    await stop()
    throw error
  }
}
export type DemoService = Awaited<ReturnType<typeof findOrStart>>
