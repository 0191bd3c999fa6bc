/**
 * Hands out whatever has come in since the last batch was asked for: single items when the feed is slow, full batches
 * when it is fast, never waiting for a batch to fill. The source is read ahead while a batch is worked on, and not
 * further than one batch.
 */
export async function* batches<T>(source: AsyncIterable<T>, sizeMax: number): AsyncGenerator<T[]> {
  let waiting: T[] = []
  let ended = false
  let wake = Promise.withResolvers<void>()
  let room = Promise.withResolvers<void>()
  let abandoned = false

  const fill = async (): Promise<void> => {
    for await (const item of source) {
      if (abandoned) return
      waiting.push(item)
      wake.resolve()
      if (waiting.length < sizeMax) continue
      room = Promise.withResolvers()
      await room.promise
      if (abandoned) return
    }
  }
  const filling = fill().finally(() => {
    ended = true
    wake.resolve()
  })
  // A failure is thrown below, once everything that came before it has been handed out.
  filling.catch(() => undefined)

  try {
    for (;;) {
      await wake.promise
      const batch = waiting
      waiting = []
      if (!ended) wake = Promise.withResolvers()
      room.resolve()
      if (batch.length > 0) yield batch
      else if (ended) break
    }
    await filling
  } finally {
    abandoned = true
    room.resolve()
  }
}
