import { type ChildProcess, fork } from 'node:child_process'
import { closeSync, fstatSync, mkdtempSync, openSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { FileResult, Order, Report, RunOptions } from './messages.ts'
import { nodeOptions } from './settings.ts'

/** One worker, as the runner sees it. */

export type WorkerLimits = {
  /** For one file; a worker that takes longer hangs, and is killed. */
  readonly fileMaxMs: number
  /** For the end of a worker without open handles, its service and its broker included. */
  readonly endMaxMs: number
}

export type FileEnd = FileResult & {
  readonly file: string
  readonly tookMs: number
  /** All that was printed meanwhile, also by what the tests have started. */
  readonly output: string
  /** Whether the worker can run another one. */
  readonly isAlive: boolean
}

export type Worker = {
  readonly run: (file: string) => Promise<FileEnd>
  /** Resolves with a message if it does not end in order. */
  readonly end: () => Promise<string | undefined>
  /** Ends it in the middle of a file: at first by SIGTERM, so that services can end in order. */
  readonly interrupt: () => Promise<void>
}

const module = fileURLToPath(new URL('worker.ts', import.meta.url))
const NOTHING = { passed: 0, failures: [] }

/** The process group, so that nothing that a test has started outlives its worker. */
const signalGroup = ({ pid }: ChildProcess, signal: NodeJS.Signals): void => {
  try {
    if (pid !== undefined) process.kill(-pid, signal)
  } catch {
    // All of them have ended.
  }
}

/** A file instead of a pipe, so that all output before the end of a process is kept in order, even if it was killed. */
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

/** Resolves with undefined when the time is over before the promise. */
const within = async <T>(promise: Promise<T>, maxMs: number): Promise<T | undefined> => {
  let late: NodeJS.Timeout | undefined
  const over = new Promise<undefined>(resolve => {
    late = setTimeout(() => resolve(undefined), maxMs)
  })
  return Promise.race([promise, over]).finally(() => clearTimeout(late))
}

export const startWorker = (options: RunOptions, { fileMaxMs, endMaxMs }: WorkerLimits): Worker => {
  const output = openOutput()
  const child = fork(module, [JSON.stringify(options)], {
    // A group of its own: Ctrl-C at the terminal reaches the runner alone, which ends its workers.
    detached: true,
    execArgv: [...nodeOptions],
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
  const send = (order: Order): void => void child.send(order, () => undefined)
  let lastFile = 'no other'

  const next = (): Promise<FileResult> =>
    new Promise(resolve => {
      child.on('message', function listen(message: Report) {
        if (!('result' in message)) return
        child.off('message', listen)
        resolve(message.result)
      })
    })
  const outcomeOf = async (result: Promise<FileResult>): Promise<FileResult | string> => {
    const dead = closed.then(how => `The worker ended (${how}) in this file, or after ${lastFile}.`)
    const outcome = await within(Promise.race([result, dead]), fileMaxMs)
    return outcome ?? `The file did not end within ${fileMaxMs / 1000} s; its worker was killed.`
  }

  const kill = async (): Promise<void> => {
    signalGroup(child, 'SIGKILL')
    await closed
  }
  const run = async (file: string): Promise<FileEnd> => {
    const beganMs = performance.now()
    const result = next()
    send({ run: file })
    const outcome = await outcomeOf(result)
    lastFile = file
    const isAlive = typeof outcome !== 'string'
    if (!isAlive) await kill()
    const found = isAlive ? outcome : { ...NOTHING, failures: [`  1) ${outcome}`] }
    const end = { ...found, file, isAlive, tookMs: performance.now() - beganMs, output: output.takeNew() }
    if (!isAlive) output.close()
    return end
  }
  const end = async (): Promise<string | undefined> => {
    send({ end: true })
    const how = await within(closed, endMaxMs)
    if (how === undefined) await kill()
    const said = output.takeNew()
    output.close()
    if (how === 'exit code 0') return undefined
    const reason = how ?? `alive after ${endMaxMs / 1000} s, so a test has left something open`
    return `  1) A worker did not end as it should after ${lastFile}: ${reason}\n${said}`
  }
  const interrupt = async (): Promise<void> => {
    signalGroup(child, 'SIGTERM')
    if ((await within(closed, endMaxMs)) === undefined) await kill()
  }
  return { run, end, interrupt }
}
