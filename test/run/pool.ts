import type { Plan, Unit } from './plan.ts'
import type { FileEnd, Worker } from './workerProcess.ts'

/** Distributes the files of a plan to workers. */

export type Pool = {
  readonly workers: number
  readonly start: () => Worker
  readonly onFile: (end: FileEnd) => void
  /** A failure of a worker that belongs to no file. */
  readonly onFailure: (text: string) => void
  readonly signal: AbortSignal
}

/** A worker that is replaced when its process ends. */
const replaceable = ({ start, onFile, onFailure, signal }: Pool) => {
  let worker = start()
  return {
    run: async (file: string): Promise<void> => {
      if (signal.aborted) return
      const end = await worker.run(file)
      onFile(end)
      if (!end.isAlive && !signal.aborted) worker = start()
    },
    end: async (): Promise<void> => {
      if (signal.aborted) return
      const failure = await worker.end()
      if (failure !== undefined) onFailure(failure)
    },
  }
}

/**
 * Runs all units on all workers, then, when the other workers have ended, those files that run alone on the worker that
 * was the last to find nothing more to do.
 */
export const runPlan = async ({ together, alone }: Plan, pool: Pool): Promise<void> => {
  const queue: Unit[] = [...together]
  const count = Math.max(1, Math.min(pool.workers, queue.length))
  let busy = count
  let last: ReturnType<typeof replaceable> | undefined
  const lane = async (): Promise<void> => {
    const worker = replaceable(pool)
    for (let unit = queue.shift(); unit !== undefined; unit = queue.shift())
      for (const file of unit) await worker.run(file)
    busy -= 1
    if (busy === 0) last = worker
    else await worker.end()
  }
  await Promise.all(Array.from({ length: count }, lane))
  for (const file of alone) await last?.run(file)
  await last?.end()
}
