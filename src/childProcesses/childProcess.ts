import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type Channel, type ChannelMessage, createChannel, type Operations } from './channel.ts'
import { signalProcess } from './endProcess.ts'
import { watchLiveness } from './liveness.ts'
import type { ChildOperations, ParentOperations, StartFailure } from './protocol.ts'

/** One process of a child, in its own process group: its channel, its output, and whether it answers. */

const OUTPUT_LINES_MAX = 20

export type ProcessOptions<Remote extends ChildOperations> = {
  /** A module that calls runAsChild. */
  readonly module: string | URL
  readonly args?: readonly string[]
  /** Options of Node; those of this process by default. */
  readonly nodeOptions?: readonly string[]
  /** Variables besides those of this process. */
  readonly variables?: Readonly<Record<string, string>>
  /** Receives each line of output. Without it the process writes where this process does. */
  readonly log?: ((line: string) => void) | undefined
  /** Asks whether the process answers; with `ping` by default. */
  readonly ask?: (call: Channel<Remote>['call']) => Promise<unknown>
  readonly askEveryMs?: number
  /** The process does not answer, and is killed if that takes too long. */
  readonly onSilent?: () => void
  readonly onAnswer?: () => void
}

export type ProcessEnd = {
  /** The signal or exit code. */
  readonly how: string
  /** What the process said of a start that failed. */
  readonly failure?: StartFailure | undefined
  /** The last lines of its output, unless it wrote elsewhere. */
  readonly lastLines: readonly string[]
}

export type ChildProcess<Remote extends ChildOperations = ChildOperations> = {
  readonly pid: number
  readonly call: Channel<Remote>['call']
  /** Sends a message with a connection, which stays open here. */
  readonly give: (message: object, connection: Socket) => void
  /** False too once the process has ended. */
  readonly isAnswering: () => boolean
  /** Resolves to the address of the child. Stays pending if the process ends before it is ready. */
  readonly ready: Promise<string>
  readonly stop: () => void
  /** Kills the process and all that it started. */
  readonly kill: () => void
  readonly ended: Promise<ProcessEnd>
}

const pathOf = (module: string | URL): string =>
  module instanceof URL || module.startsWith('file:') ? fileURLToPath(module) : module

const forkModule = ({ module, args = [], nodeOptions, variables = {}, log }: ProcessOptions<never>) => {
  const output = log === undefined ? 'inherit' : 'pipe'
  return fork(pathOf(module), args, {
    // Ctrl-C at the terminal reaches this process alone, which then ends its children in order.
    detached: true,
    stdio: ['ignore', output, output, 'ipc'],
    env: { ...process.env, ...variables },
    ...(nodeOptions && { execArgv: [...nodeOptions] }),
  })
}

type Forked = ReturnType<typeof forkModule>

/** The last lines of the output, each of which is logged, and whether all were read. */
const followOutput = ({ stdout, stderr }: Forked, log: ((line: string) => void) | undefined) => {
  const lines: string[] = []
  const readers = [stdout, stderr].flatMap(input => (input && log ? [createInterface({ input })] : []))
  for (const reader of readers)
    reader.on('line', line => {
      if (lines.push(line) > OUTPUT_LINES_MAX) lines.shift()
      log?.(line)
    })
  return { lines, read: Promise.all(readers.map(reader => once(reader, 'close'))) }
}

const exitOf = (forked: Forked): Promise<string> =>
  new Promise(resolve => {
    // The process could not be started.
    forked.once('error', error => resolve(error.message))
    forked.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`))
  })

/** `open` makes the operations that the process may call. Long because its functions share the state of the process. */
export const startProcess = <Remote extends ChildOperations>(
  options: ProcessOptions<Remote>,
  open: (child: ChildProcess<Remote>) => Operations = () => ({}),
): ChildProcess<Remote> => {
  const {
    ask = () => channel.call('ping'),
    log,
    onSilent = () => undefined,
    onAnswer = () => undefined,
    askEveryMs,
  } = options
  const forked = forkModule(options)
  const output = followOutput(forked, log)
  const ready = Promise.withResolvers<string>()
  let failure: StartFailure | undefined
  let end: string | undefined
  let isHung = false
  const kill = (): void => {
    if (forked.pid !== undefined) signalProcess(-forked.pid, 'SIGKILL')
  }
  const onHung = (): void => {
    isHung = true
    kill()
  }
  // A process that has ended takes no messages; its end is reported by its exit.
  const send = (message: object, connection?: Socket): void =>
    void (forked.connected && forked.send(message, connection, { keepOpen: true }, () => undefined))
  const own: ParentOperations = { ready: ready.resolve, notStarted: reported => void (failure = reported) }
  const operations: Operations = { ...own }
  const channel = createChannel<ChildOperations>(send, operations)
  const call = channel.call as Channel<Remote>['call']
  const liveness = watchLiveness({
    ask: () => ask(call),
    onSilent,
    onAnswer,
    onHung,
    ...(askEveryMs && { askEveryMs }),
  })
  const untilEnd = async (): Promise<ProcessEnd> => {
    const how = await exitOf(forked)
    end = isHung ? `${how}, because it did not answer` : how
    liveness.stop()
    channel.close()
    await output.read
    return { how: end, failure, lastLines: output.lines }
  }
  const child = {
    pid: forked.pid ?? 0,
    call,
    stop: () => void channel.call('stop').catch(() => undefined),
    give: send,
    isAnswering: () => end === undefined && liveness.isAnswering(),
    ready: ready.promise,
    kill,
    ended: untilEnd(),
  }
  Object.assign(operations, open(child))
  forked.on('message', (message: ChannelMessage) => channel.receive(message))
  return child
}
