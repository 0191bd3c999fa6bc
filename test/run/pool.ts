import type { Plan, FileGroup } from './plan.ts'
import type { FileOutcome, Worker } from './workerProcess.ts'

/** A pool of worker processes, to which the files of a plan are distributed. */

export type Workers = {
  readonly start: () => Worker
  readonly onFile: (outcome: FileOutcome) => void
  /** A failure of a worker that belongs to no file. */
  readonly onFailure: (text: string) => void
  readonly signal: AbortSignal
}
export type Pool = Workers & { readonly workers: number }

/** A worker whose process is replaced when it has ended before its time. */
const createReplaceableWorker = ({ start, onFile, onFailure, signal }: Workers) => {
  let worker = start()
  return {
    run: async (file: string): Promise<void> => {
      if (signal.aborted) return
      const outcome = await worker.run(file)
      onFile(outcome)
      if (!outcome.isAlive && !signal.aborted) worker = start()
    },
    end: async (): Promise<void> => {
      if (signal.aborted) return
      const failure = await worker.end()
      if (failure !== undefined) onFailure(failure)
    },
  }
}

/**
 * Runs the concurrent files on all workers, then on a new worker those that use all processors themselves, while the
 * services of the other workers end, and then the exclusive files.
 */
export const runPlan = async ({ concurrent, parallel, exclusive }: Plan, pool: Pool): Promise<void> => {
  const queue: FileGroup[] = [...concurrent]
  const ending: Promise<void>[] = []
  const runFromQueue = async (): Promise<void> => {
    const worker = createReplaceableWorker(pool)
    for (let group = queue.shift(); group !== undefined; group = queue.shift())
      for (const file of group) await worker.run(file)
    ending.push(worker.end())
  }
  await Promise.all(Array.from({ length: Math.min(pool.workers, queue.length) }, runFromQueue))
  if (parallel.length + exclusive.length > 0) {
    const worker = createReplaceableWorker(pool)
    for (const file of parallel) await worker.run(file)
    await Promise.all(ending)
    for (const file of exclusive) await worker.run(file)
    ending.push(worker.end())
  }
  await Promise.all(ending)
}

/** Runs each file alone, in a new worker that has run no other file. */
export const runAlone = async (files: readonly string[], workers: Workers): Promise<void> => {
  for (const file of files) {
    if (workers.signal.aborted) return
    const worker = createReplaceableWorker(workers)
    await worker.run(file)
    await worker.end()
  }
}
