const IDS_MAX = 50_000

/**
 * The stream that was the first to have an event with an id, for the newest ids. The real server recognises a resend that
 * expects no exact revision by one table of ids for all streams, in which the first event with an id stays.
 */
export type FirstStreams = {
  of(id: string): string | undefined
  add(id: string, stream: string): void
}

export const openFirstStreams = (): FirstStreams => {
  const streams = new Map<string, string>()
  return {
    of: id => streams.get(id),
    add: (id, stream) => {
      if (streams.has(id)) return
      streams.set(id, stream)
      if (streams.size <= IDS_MAX) return
      const [oldest] = streams.keys()
      if (oldest !== undefined) streams.delete(oldest)
    },
  }
}
