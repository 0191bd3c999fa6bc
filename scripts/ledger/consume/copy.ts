import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { type FileHandle, open, readFile, rename, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { createFolders } from '../../../src/lib/folders.ts'
import { type FileLock, tryFileLock } from '../../../src/embedded/fileLock.ts'
import { StartupError, systemCode } from '../../../src/lib/startupError.ts'
import { type Fact, factSchema, identityOf, topicOf } from './fact.ts'
import { factLines, keepWholeLines } from './jsonLines.ts'

/**
 * The subscriber's copy: a folder with a JSON lines file for each topic, and a file with its progress.
 *
 * facts ──▶ written and synced ──▶ state.json, replaced in one step ──▶ (Kafka) the offset is committed
 *
 * Progress is stored after the facts, so that it is never ahead of them: after a crash the facts since the last
 * progress are read again, and known ones are skipped. A truncated last line is removed, since its fact is read again.
 */

const stateSchema = z.object({
  from: z.enum(['http', 'kafka']),
  topics: z.array(z.string()),
  /** The cursor of GET /events; null before the first page, and for Kafka, which stores offsets itself. */
  cursor: z.string().nullable(),
  /** Every fact up to this position has been written; -1 before the first page. */
  position: z.string().regex(/^(?:-1|\d{1,20})$/),
  /** The consumer group, which only this copy uses. */
  group: z.string(),
})
export type State = z.output<typeof stateSchema>

type Counts = {
  /** New facts. */
  taken: number
  /** Facts that the copy had already. */
  repeated: number
  /** Facts that came after a later one of their key, which is a defect of the ledger. */
  late: number
}

type CopySource = Pick<State, 'from'> & { readonly topics: readonly string[] | undefined }

const STATE = 'state.json'
export const fileOf = (folder: string, topic: string): string => join(folder, `${topic}.jsonl`)

/** The state of an existing copy. Throws a StartupError if the folder has none. */
export const readState = async (folder: string): Promise<State> => {
  const text = await readFile(join(folder, STATE), 'utf8').catch((error: unknown) => {
    throw systemCode(error) === 'ENOENT' ? new StartupError(`There is no copy in ${folder}.`) : error
  })
  try {
    return stateSchema.parse(JSON.parse(text))
  } catch (error) {
    throw new StartupError(`${join(folder, STATE)} is not what ledger consume wrote: begin a new copy.`, error)
  }
}

const writeState = async (folder: string, state: State): Promise<void> => {
  const path = join(folder, STATE)
  const file = await open(`${path}.new`, 'w')
  try {
    await file.writeFile(`${JSON.stringify(state, null, 2)}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(`${path}.new`, path)
}

const openState = async (folder: string, { from, topics }: CopySource, all: readonly string[]): Promise<State> => {
  const selection = [...new Set(topics ?? all)]
  if (!existsSync(join(folder, STATE))) {
    const state: State = {
      from,
      topics: selection,
      cursor: null,
      position: '-1',
      group: `ledger-consume-${randomUUID()}`,
    }
    await writeState(folder, state)
    return state
  }
  const state = await readState(folder)
  const isOther = topics !== undefined && selection.toSorted().join() !== state.topics.toSorted().join()
  if (state.from !== from || isOther)
    throw new StartupError(`${folder} is a copy of ${state.topics.join(', ')} from ${state.from}: use another folder.`)
  return state
}

/** Reads the facts of the copy, and opens the file of each topic for appending. */
const openFiles = async (folder: string, topics: readonly string[], onFact: (fact: Fact) => void) => {
  const files = new Map<string, FileHandle>()
  for (const topic of topics) {
    const path = fileOf(folder, topic)
    await keepWholeLines(path)
    for await (const { value } of factLines(path)) {
      const fact = factSchema.safeParse(value)
      if (fact.success) onFact(fact.data)
    }
    files.set(topic, await open(path, 'a'))
  }
  return files
}

/** The facts of the copy, which tell the tenant, the source and the log that it is of. */
const createIndex = (from: State['from']) => {
  const counts: Counts = { taken: 0, repeated: 0, late: 0 }
  const identities = new Map<string, string>()
  const sequences = new Map<string, string>()
  let newest: Fact | undefined
  const add = (fact: Fact): void => {
    identities.set(fact.position, identityOf(fact))
    const last = sequences.get(fact.partitionkey)
    if (last === undefined || last < fact.sequence) sequences.set(fact.partitionkey, fact.sequence)
    if (newest === undefined || BigInt(newest.position) < BigInt(fact.position)) newest = fact
  }
  const isForeign = (fact: Fact, known: ReadonlyMap<string, string>): boolean =>
    (identities.get(fact.position) ?? known.get(fact.position)) !== identityOf(fact) ||
    (newest !== undefined && fact.source !== newest.source) ||
    (newest !== undefined && from === 'http' && fact.tenantid !== newest.tenantid)
  /** A log has one fact at a position, so one of two in the same batch is foreign too: the later one. */
  const foreignIn = (facts: readonly Fact[]): Fact | undefined => {
    const first = new Map<string, string>()
    for (const fact of facts) if (!first.has(fact.position)) first.set(fact.position, identityOf(fact))
    return facts.find(fact => isForeign(fact, first))
  }
  /** Adds the fact if it is new: then it is to be written. Sequences grow within a key, so an earlier one is late. */
  const addIfNew = (fact: Fact): boolean => {
    if (identities.get(fact.position) === identityOf(fact)) {
      counts.repeated += 1
      return false
    }
    if ((sequences.get(fact.partitionkey) ?? '') > fact.sequence) counts.late += 1
    counts.taken += 1
    add(fact)
    return true
  }
  return { counts, newest: () => newest, add, foreignIn, addIfNew }
}

const LOCK = 'lock'

/** Two runs would write into one file at once, and each would write the facts that it does not know of the other. */
const lockCopy = (folder: string): FileLock => {
  const lock = tryFileLock(join(folder, LOCK))
  if (lock !== undefined) return lock
  throw new StartupError(`Another ledger consume writes into ${folder}: wait for its end, or use another folder.`)
}

/** Opens or creates the copy, with `all` topics if none are named. The folder is locked until `close`. */
export const openCopy = async (folder: string, of: CopySource, all: readonly string[]) => {
  await createFolders(resolve(folder))
  const lock = lockCopy(folder)
  try {
    const copy = await openLockedCopy(folder, of, all)
    return { ...copy, close: () => copy.close().finally(lock.release) }
  } catch (error) {
    lock.release()
    throw error
  }
}

export type Copy = Awaited<ReturnType<typeof openCopy>>

/** Missing facts cannot be appended in order. Throws for a copy from Kafka, which keeps facts for days only. */
export const emptyCopy = async (folder: string): Promise<void> => {
  const state = await readState(folder)
  if (state.from === 'kafka')
    throw new StartupError(
      'A copy from Kafka is not repaired: its topics may no longer have the facts. Copy anew over HTTP.',
    )
  const lock = lockCopy(folder)
  try {
    await writeState(folder, { ...state, cursor: null, position: '-1' })
    for (const topic of state.topics) await rm(fileOf(folder, topic), { force: true })
  } finally {
    lock.release()
  }
}

const notOfCopy = (folder: string, { id, position, tenantid, source }: Fact): StartupError =>
  new StartupError(
    `The fact ${id} at position ${position}, of tenant ${tenantid} and source ${source}, is not of the tenant, the source or ` +
      `the log that ${folder} is a copy of: use another folder. In a new folder: the topics have facts that the ledger has lost in a ` +
      'restore, and its operator must empty them (scripts/ledger/DISASTER.md).',
  )

const openLockedCopy = async (folder: string, of: CopySource, all: readonly string[]) => {
  let state = await openState(folder, of, all)
  const { counts, newest, add, foreignIn, addIfNew } = createIndex(of.from)
  const files = await openFiles(folder, state.topics, add)
  return {
    state: (): State => state,
    counts: counts as Readonly<Counts>,
    /** The fact with the greatest position. */
    newest,
    /** Facts first, then progress; not concurrently. Throws a StartupError, before it writes, for a foreign fact. */
    write: async (facts: readonly Fact[], progress?: Pick<State, 'cursor' | 'position'>): Promise<void> => {
      const foreign = foreignIn(facts)
      if (foreign !== undefined) throw notOfCopy(folder, foreign)
      const fresh = facts.filter(fact => files.has(topicOf(fact)) && addIfNew(fact))
      for (const [topic, ofTopic] of Map.groupBy(fresh, topicOf)) {
        const file = files.get(topic)
        await file?.appendFile(ofTopic.map(fact => `${JSON.stringify(fact)}\n`).join(''))
        await file?.sync()
      }
      if (progress === undefined) return
      state = { ...state, ...progress }
      await writeState(folder, state)
    },
    close: async (): Promise<void> => {
      for (const file of files.values()) await file.close()
    },
  }
}
