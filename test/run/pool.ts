import type { Plan, FileGroup } from './plan.ts'
import type { FileOutcome, Worker } from './workerProcess.ts'

/** A pool of worker processes, to which the files of a plan are distributed. */

export type Pool = {
  readonly workers: number
  readonly start: () => Worker
  readonly onFile: (outcome: FileOutcome) => void
  /** A failure of a worker that belongs to no file. */
  readonly onFailure: (text: string) => void
  readonly signal: AbortSignal
}

/** A worker whose process is replaced when it has ended before its time. */
const createReplaceableWorker = ({ start, onFile, onFailure, signal }: Pool) => {
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
 * Runs the concurrent files on all workers. The worker that finishes last runs the exclusive files, after all other workers
 * have ended.
 */
export const runPlan = async ({ concurrent, exclusive }: Plan, pool: Pool): Promise<void> => {
  const queue: FileGroup[] = [...concurrent]
  const count = Math.max(1, Math.min(pool.workers, queue.length))
  let workingCount = count
  let last: ReturnType<typeof createReplaceableWorker> | undefined
  const runFromQueue = async (): Promise<void> => {
    const worker = createReplaceableWorker(pool)
    for (let group = queue.shift(); group !== undefined; group = queue.shift())
      for (const file of group) await worker.run(file)
    workingCount -= 1
    if (workingCount === 0) last = worker
    else await worker.end()
  }
  await Promise.all(Array.from({ length: count }, runFromQueue))
  for (const file of exclusive) await last?.run(file)
  await last?.end()
}
