import { type ChildProcess, fork } from 'node:child_process'
import type { Job, Progress, Report, WorkerSettings } from './worker.ts'

/**
 * A crashed instance leaves promises that nothing settles, and Node keeps the combined abort signals that they listen to:
 * some 4 MB for each seed.
 */
const SEEDS_PER_PROCESS = 100

/**
 * Runs seeds in this number of processes, and yields the report of each in the order of arrival. The settings are those of
 * the engine of each process.
 */
export async function* runSeeds(
  jobs: readonly Job[],
  processes: number,
  onProgress: (progress: Progress) => void = () => undefined,
  settings: WorkerSettings = {},
): AsyncGenerator<Report> {
  const left = [...jobs]
  const arrived: Report[] = []
  let failure: Error | undefined
  let wake = Promise.withResolvers<void>()
  const notify = (): void => {
    wake.resolve()
    wake = Promise.withResolvers()
  }
  const sendNext = (child: ChildProcess): void => {
    const job = left.shift()
    if (job === undefined) child.disconnect()
    else child.send(job)
  }
  const start = (): ChildProcess => {
    let done = 0
    const child = fork(new URL('worker.ts', import.meta.url), [JSON.stringify(settings)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    child.on('message', (message: Report | Progress | 'ready') => {
      if (message !== 'ready' && 'reachedMs' in message) return onProgress(message)
      if (message !== 'ready') {
        arrived.push(message)
        done += 1
      }
      if (done < SEEDS_PER_PROCESS) sendNext(child)
      else {
        child.disconnect()
        if (left.length > 0) children.push(start())
      }
      notify()
    })
    child.on('exit', code => {
      if (code !== 0 && code !== null)
        failure = new Error(`A worker process of the simulation ended with code ${code}.`)
      notify()
    })
    return child
  }
  const children = Array.from({ length: Math.min(processes, jobs.length) }, start)
  try {
    for (let reported = 0; reported < jobs.length; ) {
      const next = wake.promise
      for (const report of arrived.splice(0)) {
        reported += 1
        yield report
      }
      if (failure) throw failure
      if (reported < jobs.length && arrived.length === 0) await next
    }
  } finally {
    for (const child of children) child.kill()
  }
}
