import { execFile, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rename, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startKafka } from '../../scripts/kafka/broker.ts'
import { removeFolder } from '../support/folders.ts'
import { nodeOptions } from './settings.ts'

/**
 * The archive of the classes of a Kafka broker (class-data sharing of the JVM), with which a broker starts in half the
 * processor time. The runner makes it once for a machine, beside the tests; `useClassArchive` in test/support/kafka.ts
 * uses it. As a program: `node test/run/classArchive.ts <path>` makes the archive.
 */

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url))
const CACHE = here('../../node_modules/.cache/')
const POM = here('../../scripts/kafka/pom.xml')
const JARS = here('../../.data/kafka-libs')
const HASH_CHARS = 16
const USES_BROKER = /describeWithOwnBroker|kafkaForTests|kafkaKind|startBroker|startKafka|useClassArchive/

const run = promisify(execFile)

/** An archive is valid for one JVM and for the jars as they were fetched, so its name has their versions. */
export const pathOfArchive = async (): Promise<string> => {
  const { stdout, stderr } = await run('java', ['-version'])
  const fetchedMs = await stat(join(JARS, 'jars.json')).then(
    ({ mtimeMs }) => mtimeMs,
    () => 0,
  )
  const hash = createHash('sha256')
    .update(`${stdout}${stderr}${fetchedMs}`)
    .update(await readFile(POM))
  return join(CACHE, `kafka-${hash.digest('hex').slice(0, HASH_CHARS)}.jsa`)
}

export const usesBroker = async (files: readonly string[]): Promise<boolean> =>
  (await Promise.all(files.map(file => readFile(file, 'utf8')))).some(text => USES_BROKER.test(text))

/** Starts to make the archive unless it exists. The result ends the program that makes it. */
export const makeClassArchive = (path: string): (() => void) => {
  if (existsSync(path)) return () => undefined
  const maker = spawn(process.execPath, [...nodeOptions, here('classArchive.ts'), path], { stdio: 'ignore' })
  // Without the archive, brokers take longer to start.
  maker.on('error', () => undefined)
  return () => void maker.kill()
}

/** The JVM writes the archive of all classes that it has loaded when it ends. */
const make = async (path: string): Promise<void> => {
  const fresh = `${path}.${process.pid}`
  const dataDir = await mkdtemp(join(tmpdir(), 'ledger-kafka-'))
  await mkdir(dirname(path), { recursive: true })
  try {
    process.env['JDK_JAVA_OPTIONS'] = `${process.env['JDK_JAVA_OPTIONS'] ?? ''} -XX:ArchiveClassesAtExit=${fresh}`
    const kafka = await startKafka({ dataDir })
    process.kill(kafka.pid, 'SIGTERM')
    await kafka.ended
    await rename(fresh, path)
  } finally {
    await rm(fresh, { force: true })
    await removeFolder(dataDir)
  }
}

if (import.meta.main) await make(process.argv[2] ?? '')
