import { randomUUID } from 'node:crypto'
import { type FileHandle, mkdir, open, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { StartupError, systemCode } from '../../../src/startupError.ts'
import { type Fact, factSchema, identityOf, topicOf } from './fact.ts'
import { factLines, keepWholeLines } from './lines.ts'

/**
 * The subscriber's own copy: a folder with a file of lines for each topic, and a file that says how far it has come.
 *
 *   facts ──▶ written and synced ──▶ state.json, replaced in one step ──▶ (Kafka) the offset is committed
 *
 * Whatever ends the process in between, the facts come again, and those that are there are passed over: what counts is
 * that the place to go on from never gets ahead of what is written. A line that was cut short is dropped, since its fact
 * comes again.
 */

const stateSchema = z.object({
  from: z.enum(['http', 'kafka']),
  topics: z.array(z.string()),
  /** Of GET /events; null before the first page, and for Kafka, which keeps its own. */
  cursor: z.string().nullable(),
  /** Every fact up to here has been written; -1 before the first page. */
  position: z.string().regex(/^(?:-1|\d{1,20})$/),
  /** The consumer group that is this copy's alone. */
  group: z.string(),
})
export type State = z.output<typeof stateSchema>

export type Counts = {
  /** Facts that were new. */
  taken: number
  /** Facts that were there already. */
  repeated: number
  /** Facts that came behind a later one of their key, which must not happen. */
  late: number
}

export type Copy = {
  readonly state: () => State
  readonly counts: Readonly<Counts>
  /** Writes those that are new, and then where to go on. Never two at a time. */
  readonly take: (facts: readonly Fact[], progress?: Pick<State, 'cursor' | 'position'>) => Promise<void>
  readonly close: () => Promise<void>
}

export type CopyOf = Pick<State, 'from'> & { readonly topics: readonly string[] | undefined }

const STATE = 'state.json'
export const fileOf = (folder: string, topic: string): string => join(folder, `${topic}.jsonl`)

/** The state of a copy that is there. Throws a StartupError for a folder that holds none. */
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

const isThere = (folder: string): Promise<boolean> =>
  readFile(join(folder, STATE)).then(
    () => true,
    () => false,
  )

const begin = async (folder: string, { from, topics }: CopyOf, all: readonly string[]): Promise<State> => {
  const wanted = [...new Set(topics ?? all)]
  if (!(await isThere(folder))) {
    const state: State = { from, topics: wanted, cursor: null, position: '-1', group: `ledger-consume-${randomUUID()}` }
    await writeState(folder, state)
    return state
  }
  const state = await readState(folder)
  const isOther = topics !== undefined && wanted.toSorted().join() !== state.topics.toSorted().join()
  if (state.from !== from || isOther)
    throw new StartupError(`${folder} is a copy of ${state.topics.join(', ')} from ${state.from}: name another folder.`)
  return state
}

/** Opens the copy in the folder, or begins it, of `all` topics when none are named. Reads what is there. */
export const openCopy = async (folder: string, of: CopyOf, all: readonly string[]): Promise<Copy> => {
  await mkdir(folder, { recursive: true })
  let state = await begin(folder, of, all)
  const counts: Counts = { taken: 0, repeated: 0, late: 0 }
  const seen = new Set<string>()
  const newest = new Map<string, string>()
  const files = new Map<string, FileHandle>()

  const remember = (fact: Fact): void => {
    seen.add(identityOf(fact))
    const last = newest.get(fact.partitionkey)
    if (last === undefined || last < fact.sequence) newest.set(fact.partitionkey, fact.sequence)
  }
  for (const topic of state.topics) {
    const path = fileOf(folder, topic)
    await keepWholeLines(path)
    for await (const { value } of factLines(path)) {
      const fact = factSchema.safeParse(value)
      if (fact.success) remember(fact.data)
    }
    files.set(topic, await open(path, 'a'))
  }

  /** Whether the fact is to be written. Within a key sequences only grow, so that nothing has to be sorted. */
  const isNew = (fact: Fact): boolean => {
    if (seen.has(identityOf(fact))) {
      counts.repeated += 1
      return false
    }
    if ((newest.get(fact.partitionkey) ?? '') > fact.sequence) counts.late += 1
    counts.taken += 1
    remember(fact)
    return true
  }

  return {
    state: () => state,
    counts,
    take: async (facts, progress) => {
      const fresh = facts.filter(fact => files.has(topicOf(fact)) && isNew(fact))
      for (const [topic, ofTopic] of Map.groupBy(fresh, topicOf)) {
        const file = files.get(topic)
        await file?.appendFile(ofTopic.map(fact => `${JSON.stringify(fact)}\n`).join(''))
        await file?.sync()
      }
      if (progress === undefined) return
      state = { ...state, ...progress }
      await writeState(folder, state)
    },
    close: async () => {
      for (const file of files.values()) await file.close()
    },
  }
}
