import { execFile } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { StartupError, systemCode } from '../../src/lib/startupError.ts'

const POM = fileURLToPath(new URL('pom.xml', import.meta.url))
const MANIFEST = 'jars.json'
const JAVA_MAJOR_MIN = 17
const MAVEN_TIMEOUT_MS = 300_000
const OUTPUT_MAX_BYTES = 16_777_216
const REMEDY = 'install both (apt-get install default-jre-headless maven), or set KAFKA_BROKERS to a running broker'

const run = promisify(execFile)

/** The major version of the `java` on the PATH (17), or undefined if none runs. */
export const javaMajor = async (): Promise<number | undefined> => {
  try {
    const { stderr, stdout } = await run('java', ['-version'])
    const version = /version "(?:1\.)?(\d+)/.exec(stderr + stdout)?.[1]
    return version === undefined ? undefined : Number(version)
  } catch {
    return undefined
  }
}

/** Throws a StartupError with instructions unless a suitable Java is on the PATH. */
export const requireJava = async (): Promise<void> => {
  const major = await javaMajor()
  if (major === undefined) throw new StartupError(`Kafka needs java and mvn, and no java on the PATH works: ${REMEDY}.`)
  if (major < JAVA_MAJOR_MIN) {
    throw new StartupError(`Kafka needs Java ${JAVA_MAJOR_MIN} or newer and found ${major}: ${REMEDY}.`)
  }
}

const sha256 = (content: Buffer): string => createHash('sha256').update(content).digest('hex')

const manifestOf = async (libsDir: string) => {
  const names = (await readdir(libsDir)).filter(name => name.endsWith('.jar')).sort()
  const hashes = await Promise.all(names.map(async name => [name, sha256(await readFile(join(libsDir, name)))]))
  return { pom: sha256(await readFile(POM)), jars: Object.fromEntries(hashes) }
}

/** Whether the folder holds exactly the jars of the present pom, by hash, so that torn or altered jars are found. */
const intact = async (libsDir: string): Promise<boolean> => {
  try {
    const recorded = await readFile(join(libsDir, MANIFEST), 'utf8')
    return recorded === JSON.stringify(await manifestOf(libsDir))
  } catch {
    return false
  }
}

const resolveInto = async (folder: string): Promise<void> => {
  // Maven takes a relative path as one from the folder of the pom.
  const goal = ['dependency:copy-dependencies', `-DoutputDirectory=${resolve(folder)}`, '-DincludeScope=runtime']
  try {
    await run('mvn', ['-q', '-B', '-f', POM, ...goal], { timeout: MAVEN_TIMEOUT_MS, maxBuffer: OUTPUT_MAX_BYTES })
  } catch (error) {
    if (systemCode(error) === 'ENOENT') {
      throw new StartupError(`Kafka needs java and mvn, and mvn is not on the PATH: ${REMEDY}.`, error)
    }
    const output = error instanceof Error && 'stdout' in error ? String(error.stdout) : ''
    const reason = /\[ERROR\] (.+)/.exec(output)?.[1] ?? String(error).trim().split('\n').at(-1)
    throw new StartupError(`Maven could not fetch the jars of Kafka: ${reason}`, error)
  }
}

/** A folder that another process completed stays, since its broker may read it; an incomplete one is moved. */
export const installJars = async (fresh: string, libsDir: string): Promise<void> => {
  await writeFile(join(fresh, MANIFEST), JSON.stringify(await manifestOf(fresh)))
  try {
    // Fails where the folder exists and is not empty.
    await rename(fresh, libsDir)
  } catch (error) {
    if (await intact(libsDir)) return
    if (systemCode(error) !== 'ENOTEMPTY' && systemCode(error) !== 'EEXIST') throw error
    const aside = `${libsDir}.${randomUUID()}`
    await rename(libsDir, aside)
    await rename(fresh, libsDir)
    await rm(aside, { recursive: true, force: true })
  }
}

/** Puts the jars of pom.xml into `libsDir`, by Maven unless they are complete. Several processes may do so at once. */
export const ensureJars = async (libsDir: string, log: (line: string) => void): Promise<void> => {
  if (await intact(libsDir)) return
  log('Fetching Apache Kafka with Maven (43 MB, once) …')
  const fresh = `${libsDir}.${randomUUID()}`
  try {
    await mkdir(dirname(libsDir), { recursive: true })
    await resolveInto(fresh)
    await installJars(fresh, libsDir)
  } finally {
    await rm(fresh, { recursive: true, force: true })
  }
}
