/**
 * Groups the items of a source into batches. A batch has the items that came since the last one was taken, and never waits
 * to become full. The source is read ahead by one batch at most while a batch is processed. `arrived` is called for each item
 * when it is read.
 *
 * Long because the reader of the source and the generator share one buffer.
 */
export async function* batches<T>(
  source: AsyncIterable<T>,
  sizeMax: number,
  arrived: (item: T) => void = () => undefined,
): AsyncGenerator<T[]> {
  let waiting: T[] = []
  let ended = false
  let wake = Promise.withResolvers<void>()
  let space = Promise.withResolvers<void>()
  let abandoned = false

  const fill = async (): Promise<void> => {
    for await (const item of source) {
      if (abandoned) return
      waiting.push(item)
      arrived(item)
      wake.resolve()
      if (waiting.length < sizeMax) continue
      space = Promise.withResolvers()
      await space.promise
      if (abandoned) return
    }
  }
  const filling = fill().finally(() => {
    ended = true
    wake.resolve()
  })
  // A failure is thrown below, after the items that came before it.
  filling.catch(() => undefined)

  try {
    for (;;) {
      await wake.promise
      const batch = waiting
      waiting = []
      if (!ended) wake = Promise.withResolvers()
      space.resolve()
      if (batch.length > 0) yield batch
      else if (ended) break
    }
    await filling
  } finally {
    abandoned = true
    space.resolve()
  }
}
