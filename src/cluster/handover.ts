import type { Socket } from 'node:net'
import type { ChildProcess } from '../childProcesses/childProcess.ts'
import type { Handover } from './protocol.ts'

/** The connections that the primary gives to one process, each of which is open here until the process has it. */

export type Receiver = {
  /** Gives a connection to the process; undefined while it serves none or does not answer. */
  readonly give: () => ((socket: Socket) => void) | undefined
  /** The process serves connections from now on. */
  readonly serve: () => void
  /** From now on it is given no connections. */
  readonly giveNoMore: () => void
  /** The process has the connection of this number. */
  readonly acknowledge: (connection: number) => void
}

export const createReceiver = (child: Pick<ChildProcess, 'give' | 'isAnswering' | 'ended'>): Receiver => {
  const sent = new Map<number, Socket>()
  let last = 0
  let isServing = false
  const acknowledge = (connection: number): void => {
    sent.get(connection)?.destroy()
    sent.delete(connection)
  }
  const give = (socket: Socket): void => {
    last += 1
    sent.set(last, socket)
    child.give({ connection: last } satisfies Handover, socket)
  }
  // The clients learn the end of the process at once, and repeat their requests.
  void child.ended.then(() => {
    for (const connection of [...sent.keys()]) acknowledge(connection)
  })
  return {
    give: () => (isServing && child.isAnswering() ? give : undefined),
    serve: () => {
      isServing = true
    },
    giveNoMore: () => {
      isServing = false
    },
    acknowledge,
  }
}
