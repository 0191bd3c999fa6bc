import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { open, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { signalProcess } from '../../src/childProcesses/endProcess.ts'
import { StartupError } from '../../src/lib/startupError.ts'

const run = promisify(execFile)

export const PROPERTIES = 'server.properties'
export const LOG = 'kafka.log'
const PID = 'kafka.pid'
const LEFTOVER_GRACE_MS = 20_000
const LEFTOVER_POLL_MS = 100

/**
 * The script replaces itself with the JVM and leaves a watcher process that ends the JVM when the parent dies, even by
 * SIGKILL: then the pipe on stdin closes without the line that an orderly stop writes. The JVM has its own process
 * group, so that Ctrl-C reaches only the parent, which stops the broker and waits for it.
 */
const GUARDED = 'exec 3<&0; (read -r over <&3 || kill -TERM $$) >/dev/null 2>&1 & exec "$@" 3<&- </dev/null'

const LOGGING = [
  '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
  '-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info',
]
const MEMORY = ['-Xmx512m', '-XX:+UseSerialGC']

export const classpathOf = (libsDir: string): string => join(libsDir, '*')

/** Starts the broker with the settings in `dataDir`; its log goes to kafka.log there. */
export const startJvm = async (dataDir: string, libsDir: string): Promise<ChildProcess> => {
  const log = await open(join(dataDir, LOG), 'w')
  try {
    const java = [...MEMORY, ...LOGGING, '-cp', classpathOf(libsDir), 'kafka.Kafka', join(dataDir, PROPERTIES)]
    const jvm = spawn('sh', ['-c', GUARDED, 'sh', 'java', ...java], {
      cwd: dataDir,
      detached: true,
      stdio: ['pipe', log.fd, log.fd],
    })
    await once(jvm, 'spawn')
    jvm.stdin?.on('error', () => undefined)
    jvm.once('exit', () => jvm.stdin?.end('over\n'))
    await writeFile(join(dataDir, PID), `${jvm.pid} ${process.pid}`)
    return jvm
  } finally {
    await log.close()
  }
}

/** The parent pid of the broker `pid` of this folder; undefined if that process is gone or is another program. */
const parentOfBroker = async (pid: number, dataDir: string): Promise<number | undefined> => {
  try {
    const { stdout } = await run('ps', ['-ww', '-o', 'ppid=,args=', '-p', String(pid)])
    return stdout.includes(join(dataDir, PROPERTIES)) ? Number.parseInt(stdout, 10) : undefined
  } catch {
    // Without `ps`, Kafka's own lock on its log directory still refuses a second broker.
    return undefined
  }
}

/** Throws a StartupError if a broker with a living parent runs here; one without is awaited, then killed. */
export const clearLeftover = async (dataDir: string): Promise<void> => {
  const recorded = await readFile(join(dataDir, PID), 'utf8').catch(() => '')
  const [pid, script] = recorded.split(' ').map(Number)
  if (pid === undefined || script === undefined || Number.isNaN(pid)) return
  const deadline = Date.now() + LEFTOVER_GRACE_MS
  for (;;) {
    const parent = await parentOfBroker(pid, dataDir)
    if (parent === undefined) return
    if (parent === script)
      throw new StartupError(`Another broker (pid ${pid}) runs on ${dataDir}; give another --data-dir.`)
    signalProcess(pid, Date.now() < deadline ? 'SIGTERM' : 'SIGKILL')
    await delay(LEFTOVER_POLL_MS)
  }
}
