/** Calls of one turn of the event loop go together: a message costs 15 µs on each side, one more call a tenth of that. */

export type Operations = Readonly<Record<string, (...args: never[]) => unknown>>

type Call = readonly [id: number, name: string, args: readonly unknown[]]
/** `error` is the message of the error of a call that failed. */
type Answer = readonly [id: number, value: unknown, error?: string]
export type ChannelMessage = { readonly calls: readonly Call[]; readonly answers: readonly Answer[] }

export type Channel<Remote extends Operations> = {
  /** Resolves to the result of the other side. Rejects when the call failed there, or when the channel is closed. */
  readonly call: <K extends keyof Remote & string>(
    name: K,
    ...args: Parameters<Remote[K]>
  ) => Promise<Awaited<ReturnType<Remote[K]>>>
  /** To be called with each message of the other side. */
  readonly receive: (message: ChannelMessage) => void
  /** The other side has ended: calls that are in flight, and later ones, reject. */
  readonly close: () => void
}

type Pending = { readonly resolve: (value: never) => void; readonly reject: (error: Error) => void }

const closed = (): Error => new Error('The other process has ended.')

/** `own`: what the other side may call. Long because its functions share the messages to send. */
export const createChannel = <Remote extends Operations>(
  send: (message: ChannelMessage) => void,
  own: Operations,
): Channel<Remote> => {
  const pending = new Map<number, Pending>()
  let calls: Call[] = []
  let answers: Answer[] = []
  let lastId = 0
  let isScheduled = false
  let isClosed = false

  const flush = (): void => {
    isScheduled = false
    const message = { calls, answers }
    calls = []
    answers = []
    if (!isClosed) send(message)
  }

  const schedule = (): void => {
    if (!isScheduled) setImmediate(flush)
    isScheduled = true
  }

  const answerTo = async ([id, name, args]: Call): Promise<Answer> => {
    try {
      return [id, await own[name]?.(...(args as never[]))]
    } catch (error) {
      return [id, null, error instanceof Error ? error.message : String(error)]
    }
  }

  const answer = async (call: Call): Promise<void> => {
    const given = await answerTo(call)
    // Not `answers.push(await …)`: that would push to the array from before the await, which may have been sent.
    answers.push(given)
    schedule()
  }

  const settle = ([id, value, error]: Answer): void => {
    const waiting = pending.get(id)
    pending.delete(id)
    if (error === undefined) waiting?.resolve(value as never)
    else waiting?.reject(new Error(error))
  }

  return {
    call: (name, ...args) =>
      new Promise((resolve, reject) => {
        if (isClosed) return reject(closed())
        lastId += 1
        pending.set(lastId, { resolve, reject })
        calls.push([lastId, name, args])
        schedule()
      }),
    receive: message => {
      for (const received of message.answers) settle(received)
      for (const received of message.calls) void answer(received)
    },
    close: () => {
      isClosed = true
      for (const { reject } of pending.values()) reject(closed())
      pending.clear()
    },
  }
}
