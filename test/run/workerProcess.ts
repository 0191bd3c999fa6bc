import { type ChildProcess, fork } from 'node:child_process'
import { closeSync, fstatSync, mkdtempSync, openSync, readSync, rmSync } from 'node:fs'
import { constants, setPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SHORT_LIVED } from '../support/nodeFlags.ts'
import type { FileResult, WorkerCommand, WorkerMessage, RunOptions } from './messages.ts'
import { nodeOptions } from './settings.ts'
import { within } from '../../src/lib/time.ts'

/** A worker process, controlled by the runner. */

export type WorkerLimits = {
  /** The time limit for one file; after it the worker is killed. */
  readonly fileMaxMs: number
  /** The time limit for the exit of a worker, which includes the end of its shared service and broker. */
  readonly endMaxMs: number
}

export type FileOutcome = FileResult & {
  readonly file: string
  readonly tookMs: number
  /** All output during the file, including that of the programs that its tests started. */
  readonly output: string
  /** Whether the worker can run another file. */
  readonly isAlive: boolean
}

export type Worker = {
  /** Undefined if the process could not be started. */
  readonly pid: number | undefined
  readonly run: (file: string) => Promise<FileOutcome>
  /** Resolves with a failure text if the process does not exit with code 0 in time. */
  readonly end: () => Promise<string | undefined>
  /** Ends the process in the middle of a file: by SIGTERM, so that services can end in order, and later by SIGKILL. */
  readonly interrupt: () => Promise<void>
}

const module = fileURLToPath(new URL('worker.ts', import.meta.url))
const NO_RESULTS = { passed: 0, failures: [] }

/** Signals the whole process group, so that no program that a test started outlives its worker. */
const signalGroup = ({ pid }: ChildProcess, signal: NodeJS.Signals): void => {
  try {
    if (pid !== undefined) process.kill(-pid, signal)
  } catch {
    // All processes of the group have ended.
  }
}

/** The output goes to a file instead of a pipe, so that it is complete and in order even if the process is killed. */
const openOutput = () => {
  const folder = mkdtempSync(join(tmpdir(), 'ledger-run-'))
  const fd = openSync(join(folder, 'output'), 'a+')
  let position = 0
  const takeNew = (): string => {
    const bytes = Buffer.alloc(fstatSync(fd).size - position)
    position += readSync(fd, bytes, 0, bytes.length, position)
    return bytes.toString()
  }
  const close = (): void => {
    closeSync(fd)
    rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  }
  return { fd, takeNew, close }
}

const late = (): undefined => undefined

/** A worker that leaves the processors to all others, and so do the programs that its tests start. */
export const startBackgroundWorker = (options: RunOptions, limits: WorkerLimits): Worker => {
  const worker = startWorker(options, limits)
  if (worker.pid !== undefined) setPriority(worker.pid, constants.priority.PRIORITY_BELOW_NORMAL)
  return worker
}

export const startWorker = (options: RunOptions, { fileMaxMs, endMaxMs }: WorkerLimits): Worker => {
  const output = openOutput()
  const child = fork(module, [JSON.stringify(options)], {
    // In a process group of its own, so that Ctrl-C in a terminal reaches only the runner, which ends its workers.
    detached: true,
    execArgv: [...nodeOptions, ...SHORT_LIVED],
    stdio: ['ignore', output.fd, output.fd, 'ipc'],
  })
  const ended = new Promise<string>(resolve => {
    child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`))
    child.once('error', error => resolve(error.message))
  })
  const closed = ended.then(how => {
    signalGroup(child, 'SIGKILL')
    return how
  })
  const send = (command: WorkerCommand): void => void child.send(command, () => undefined)
  let lastFile = 'no other'

  const next = (): Promise<FileResult> =>
    new Promise(resolve => {
      child.on('message', function listen(message: WorkerMessage) {
        if (!('result' in message)) return
        child.off('message', listen)
        resolve(message.result)
      })
    })
  const outcomeOf = async (result: Promise<FileResult>): Promise<FileResult | string> => {
    const dead = closed.then(how => `The worker ended (${how}) in this file, or after ${lastFile}.`)
    const outcome = await within(Promise.race([result, dead]), fileMaxMs, late)
    return outcome ?? `The file did not end within ${fileMaxMs / 1000} s; its worker was killed.`
  }

  const kill = async (): Promise<void> => {
    signalGroup(child, 'SIGKILL')
    await closed
  }
  const run = async (file: string): Promise<FileOutcome> => {
    const beganMs = performance.now()
    const result = next()
    send({ run: file })
    const outcome = await outcomeOf(result)
    lastFile = file
    const isAlive = typeof outcome !== 'string'
    if (!isAlive) await kill()
    const keyOutcome = isAlive ? outcome : { ...NO_RESULTS, failures: [`  1) ${outcome}`] }
    const end = { ...keyOutcome, file, isAlive, tookMs: performance.now() - beganMs, output: output.takeNew() }
    if (!isAlive) output.close()
    return end
  }
  const end = async (): Promise<string | undefined> => {
    send({ end: true })
    const how = await within(closed, endMaxMs, late)
    if (how === undefined) await kill()
    const said = output.takeNew()
    output.close()
    if (how === 'exit code 0') return undefined
    const reason = how ?? `alive after ${endMaxMs / 1000} s, so a test has left something open`
    return `  1) A worker did not exit as it should after ${lastFile}: ${reason}\n${said}`
  }
  const interrupt = async (): Promise<void> => {
    signalGroup(child, 'SIGTERM')
    if ((await within(closed, endMaxMs, late)) === undefined) await kill()
  }
  return { pid: child.pid, run, end, interrupt }
}
