/** Runs asynchronous work one at a time, in the order in which it was added. Later work runs also after a failure. */
export type SerialQueue = <T>(work: () => Promise<T>) => Promise<T>

export const createSerialQueue = (): SerialQueue => {
  let last: Promise<unknown> = Promise.resolve()
  return work => {
    const result = last.then(work, work)
    last = result.catch(() => undefined)
    return result
  }
}
