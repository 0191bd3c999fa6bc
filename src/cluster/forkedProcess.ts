import { type ChildProcess as Forked, fork } from 'node:child_process'
import type { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { type Channel, createChannel, type Operations, type ChannelMessage } from './channel.ts'
import { watchLiveness } from './liveness.ts'
import type { ChildOperations, ChildSettings, Handover } from './protocol.ts'

/** One process of a child: its channel, and the connections that are given to it. */

const MODULE = fileURLToPath(new URL('./child.ts', import.meta.url))

export type ForkedProcess = {
  readonly pid: number
  readonly call: Channel<ChildOperations>['call']
  /** False too once the process has ended. */
  readonly isAnswering: () => boolean
  /** Gives a connection to the process; undefined while it serves none or does not answer. */
  readonly give: () => ((socket: Socket) => void) | undefined
  /** From now on it is given no connections. */
  readonly giveNoMore: () => void
  readonly kill: () => void
  /** Resolves to how the process ended. */
  readonly exited: Promise<string>
}

export type ForkOptions = {
  readonly settings: Promise<ChildSettings>
  readonly operations: Operations
  /** The process serves connections from now on, or again. */
  readonly onServing: () => void
  /** The process does not answer. It gets no connections until it does, and is killed if that takes too long. */
  readonly onSilent: () => void
  /** The names of the processes that do not answer, which each process shows at /readyz. */
  readonly notAnswering: () => readonly string[]
  readonly askEveryMs?: number
}

const exitOf = (forked: Forked): Promise<string> =>
  new Promise(resolve => {
    forked.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`))
    // The process could not be started.
    forked.once('error', error => resolve(error.message))
  })

/** The connections that were sent to a process and are open here until it has them. */
const createHandover = (forked: Forked) => {
  const sent = new Map<number, Socket>()
  let last = 0
  const acknowledge = (connection: number): void => {
    sent.get(connection)?.destroy()
    sent.delete(connection)
  }
  return {
    give: (socket: Socket): void => {
      last += 1
      sent.set(last, socket)
      forked.send({ connection: last } satisfies Handover, socket, { keepOpen: true }, () => undefined)
    },
    acknowledge: acknowledge,
    /** The process has ended: the clients learn it at once, and repeat their requests. */
    destroyAll: (): void => {
      for (const connection of [...sent.keys()]) acknowledge(connection)
    },
  }
}

/** Long because its functions share the process and whether it serves. */
export const forkProcess = (options: ForkOptions): ForkedProcess => {
  const { settings, operations, onServing } = options
  // `detached`: Ctrl-C at the terminal reaches the primary only, which then stops its children in order.
  const forked = fork(MODULE, { detached: true, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const handover = createHandover(forked)
  let isServing = false
  const listening = (): void => {
    isServing = true
    onServing()
  }
  const giveNoMore = (): void => {
    isServing = false
  }
  const channel = createChannel<ChildOperations>(
    // A process that has ended takes no messages; its end is reported by its exit.
    message => forked.connected && forked.send(message, () => undefined),
    { ...operations, acknowledge: handover.acknowledge, listening, ending: giveNoMore },
  )
  forked.on('message', (message: ChannelMessage) => channel.receive(message))
  settings.then(values => channel.call('start', values)).catch(() => undefined)
  let isHung = false
  let hasEnded = false
  const liveness = watchLiveness({
    ...options,
    ask: () => channel.call('ping', options.notAnswering()),
    onAnswer: onServing,
    onHung: () => {
      isHung = true
      forked.kill('SIGKILL')
    },
  })
  const end = async (): Promise<string> => {
    const how = await exitOf(forked)
    hasEnded = true
    liveness.stop()
    giveNoMore()
    handover.destroyAll()
    channel.close()
    return isHung ? `${how}, because it did not answer` : how
  }
  const isAnswering = (): boolean => !hasEnded && liveness.isAnswering()
  return {
    pid: forked.pid ?? 0,
    call: channel.call,
    isAnswering,
    give: () => (isServing && isAnswering() ? handover.give : undefined),
    giveNoMore,
    kill: () => void forked.kill('SIGKILL'),
    exited: end(),
  }
}
