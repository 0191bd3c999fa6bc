import type { Plan, FileGroup } from './plan.ts'
import type { FileOutcome, Worker } from './workerProcess.ts'

/** A pool of worker processes, to which the files of a plan are distributed. */

export type Workers = {
  readonly start: (kind?: 'background') => Worker
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

/** Runs the groups on one worker until there are none left, which other workers may take as well. */
const runFromQueue = async (queue: FileGroup[], workers: Workers): Promise<void> => {
  const worker = createReplaceableWorker(workers)
  for (let group = queue.shift(); group !== undefined; group = queue.shift())
    for (const file of group) await worker.run(file)
  await worker.end()
}

/** Runs the concurrent files on all workers, the background files beside them, and then the exclusive files. */
export const runPlan = async ({ concurrent, background, exclusive }: Plan, pool: Pool): Promise<void> => {
  const queue = [...concurrent]
  const lanes = Array.from({ length: Math.min(pool.workers, queue.length) }, () => runFromQueue(queue, pool))
  if (background.length > 0) lanes.push(runFromQueue([background], { ...pool, start: () => pool.start('background') }))
  await Promise.all(lanes)
  if (exclusive.length > 0) await runFromQueue([exclusive], pool)
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
