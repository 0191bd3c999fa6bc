/** Work that must not cross, one after the other in the order in which it was asked for; a failure stops none behind it. */
export const createTurns = (): (<T>(work: () => Promise<T>) => Promise<T>) => {
  let last: Promise<unknown> = Promise.resolve()
  return work => {
    const mine = last.then(work, work)
    last = mine.catch(() => undefined)
    return mine
  }
}
