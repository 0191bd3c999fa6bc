import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createCleanupStack, type CleanupStack } from '../lib/cleanupStack.ts'
import { portOf } from '../lib/portNumber.ts'
import { StartupError } from '../lib/startupError.ts'
import { type Channel, type ChannelMessage, createChannel, type Operations } from './channel.ts'
import type { ParentOperations } from './protocol.ts'

/** The main function of a child process. Started alone, it prints its address, then `ready`, and ends at a signal. */

const REPORT_MAX_MS = 1_000

export type ChildContext<Parent extends Operations = ParentOperations> = {
  /** Aborts when the process is to end. */
  readonly signal: AbortSignal
  /** Run at the end, also after a start that failed. */
  readonly cleanup: CleanupStack
  /** Rejects without a parent, and when it has ended. */
  readonly call: Channel<Parent>['call']
  /** Ends the process with exit code 1, after its clean-up. */
  readonly fail: (reason: unknown) => void
}

export type ChildMain<Parent extends Operations> = {
  /** Resolves to the address of the child when it is ready. May reject with any error once the signal has aborted. */
  readonly start: (life: ChildContext<Parent>) => Promise<string>
  /** Those that the parent may call, besides `ping` and `stop`. */
  readonly operations?: Operations
  /** The time after which a process that does not close ends all the same. */
  readonly closeMaxMs: number
  /** Without its parent the process ends at once, and closes nothing. */
  readonly endsWithParent?: boolean
}

const textOf = (error: unknown): string => {
  if (error instanceof StartupError) return error.message
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

const print = (error: unknown): void => void process.stderr.write(`${textOf(error)}\n`)

/** The value of the option `--port`. Throws a StartupError for anything else. */
export const portArgument = (text: string): number => {
  const port = portOf(text)
  if (port !== undefined) return port
  throw new StartupError(`--port must be a number from 0 to 65535, not ${text}.`)
}

/** Long because its functions share whether the process is ready, or ends. */
export const runAsChild = <Parent extends ParentOperations>(main: ChildMain<Parent>): void => {
  const stopping = new AbortController()
  const cleanup = createCleanupStack(print)
  const hasParent = process.send !== undefined
  let isReady = false

  const end = async (code: number): Promise<void> => {
    if (stopping.signal.aborted) return
    setTimeout(() => process.exit(1), main.closeMaxMs)
    stopping.abort()
    await started
    await cleanup.run()
    process.exit(code)
  }
  const report = async (cause: unknown): Promise<void> => {
    if (isReady || !hasParent) return print(cause)
    // A sentence for the operator has the failure of the dependency as its cause.
    const isUnavailable = [cause, cause instanceof Error && cause.cause].some(
      error => error instanceof Error && error.name === 'Unavailable',
    )
    const reporting = parent.call('notStarted', { reason: textOf(cause), isUnavailable }).catch(() => undefined)
    await Promise.race([reporting, sleep(REPORT_MAX_MS)])
  }
  const fail = (cause: unknown): void => {
    if (!stopping.signal.aborted) void report(cause).then(() => end(1))
  }
  const parent: Channel<ParentOperations> = createChannel(
    // An error means that the parent has ended; the callback keeps it from being thrown.
    message => void process.send?.(message, undefined, undefined, () => undefined),
    { ping: () => undefined, stop: () => void end(0), ...main.operations },
  )
  const life = { signal: stopping.signal, cleanup, call: parent.call as ChildContext<Parent>['call'], fail }

  const start = async (): Promise<void> => {
    const address = await main.start(life)
    isReady = true
    if (hasParent) await parent.call('ready', address)
    else process.stdout.write(`${address}\nready\n`)
  }
  process.on('message', (message: ChannelMessage | object, _connection?: Socket) => {
    if ('calls' in message) parent.receive(message)
  })
  process.on('disconnect', () => {
    if (main.endsWithParent) process.exit(0)
    void end(0)
    // A parent that was killed after `ready` never answers it, and the end waits for the start.
    parent.close()
  })
  // Service managers may signal every process; the parent ends its children in order.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => hasParent || void end(0))
  // A reader that has ended must not end this process before it has closed.
  for (const output of [process.stdout, process.stderr]) output.on('error', () => hasParent || void end(0))
  process.on('uncaughtException', fail)
  const started = start().catch(fail)
}
