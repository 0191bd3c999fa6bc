import { constants } from 'node:os'

/** Aborts on SIGINT, SIGTERM and SIGHUP; the reason is the exit code that shells expect. */
export const stopSignal = (): AbortSignal => {
  const stop = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(name, () => {
      if (!stop.signal.aborted) process.stderr.write('\nStopping.\n')
      stop.abort(128 + constants.signals[name])
    })
  return stop.signal
}
