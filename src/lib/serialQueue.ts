/** Queues of asynchronous work: one at a time, in the order in which it was added, also after a failure. */

export type SerialQueues = {
  readonly inTurn: <T>(name: string, work: () => Promise<T>) => Promise<T>
  /** Resolves when the work that is now in the queue has settled. Undefined when there is none. */
  readonly idle: (name: string) => Promise<void> | undefined
}

/** Queues by name. A queue without work takes no memory. */
export const createSerialQueues = (): SerialQueues => {
  const tails = new Map<string, Promise<unknown>>()
  const done = (): void => undefined
  return {
    inTurn: (name, work) => {
      const before = tails.get(name) ?? Promise.resolve()
      const mine = before.then(work, work)
      tails.set(name, mine)
      const leave = (): void => {
        if (tails.get(name) === mine) tails.delete(name)
      }
      mine.then(leave, leave)
      return mine
    },
    idle: name => tails.get(name)?.then(done, done),
  }
}

export type SerialQueue = <T>(work: () => Promise<T>) => Promise<T>

export const createSerialQueue = (): SerialQueue => {
  const { inTurn } = createSerialQueues()
  return work => inTurn('', work)
}
