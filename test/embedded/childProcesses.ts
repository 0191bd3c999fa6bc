/** Starts and observes processes for tests, and ends those that a failed test left running. */

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, readdir, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Supervision, superviseChild } from '../../src/childProcesses/supervisor.ts'
import type { ChildOperations } from '../../src/childProcesses/protocol.ts'

export { removeFolder } from '../support/folders.ts'

export const POSTGRES = join(import.meta.dirname, '../../src/embedded/postgres/postgres.ts')

export type Program = {
  readonly process: ChildProcess
  readonly pid: number
  /** The lines of stdout until `ready`; rejects if the process ends first. */
  readonly ready: Promise<readonly string[]>
  readonly exited: Promise<{ code: number | null; stderr: string }>
}

const started = new Set<ChildProcess>()

/** Runs a program with Node, without a parent that it knows. */
export const runProgram = (args: readonly string[], command: readonly string[] = [process.execPath]): Program => {
  const [program = process.execPath, ...before] = command
  const child = spawn(program, [...before, ...args], { stdio: 'pipe' })
  started.add(child)
  let stdout = ''
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => void (stderr += text))
  const exited = new Promise<{ code: number | null; stderr: string }>(resolve =>
    child.once('close', code => {
      started.delete(child)
      resolve({ code, stderr })
    }),
  )
  const ready = new Promise<readonly string[]>((resolve, reject) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
      const lines = stdout.split('\n')
      if (lines.includes('ready')) resolve(lines.slice(0, lines.indexOf('ready')))
    })
    void exited.then(({ stderr }) => reject(new Error(`ended before it was ready: ${stderr}`)))
  })
  ready.catch(() => undefined)
  return { process: child, pid: child.pid ?? 0, ready, exited }
}

export type TestChild = {
  readonly address: string
  readonly pid: number
  readonly stop: (graceMs?: number) => Promise<void>
}

/** Starts a supervised child, and resolves when it is ready. */
export const startChild = async (options: Supervision<ChildOperations>): Promise<TestChild> => {
  const child = superviseChild({ nodeOptions: [], log: () => undefined, ...options })
  const address = await child.ready
  return {
    address,
    get pid() {
      return child.current().pid
    },
    stop: child.stop,
  }
}

export const startPostgres = (dataDir: string): Promise<TestChild> =>
  startChild({ name: 'postgres', module: POSTGRES, args: port => ['--data-dir', dataDir, '--port', port] })

export const runPostgres = (dataDir: string, ...more: readonly string[]): Program =>
  runProgram([POSTGRES, '--data-dir', dataDir, ...more])

/** Ends processes that a failed test left running. */
export const endPrograms = async (): Promise<void> => {
  for (const child of started) {
    child.kill('SIGCONT')
    child.kill('SIGTERM')
  }
  for (let waited = 0; started.size > 0 && waited < 100; waited++) await sleep(100)
  for (const child of started) child.kill('SIGKILL')
}

export const temporaryFolder = async (): Promise<string> => await mkdtemp(join(tmpdir(), 'ledger-test-'))

/** The pids of living processes (not zombies) whose command line contains `text`. */
export const pidsOf = async (text: string): Promise<readonly number[]> => {
  const pids = (await readdir('/proc')).filter(name => /^\d+$/.test(name)).map(Number)
  const commands = await Promise.all(pids.map(pid => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')))
  return pids.filter((_, i) => commands[i]?.includes(text))
}

/** The rows of one statement, on a connection of its own. */
export const query = async (address: string, text: string): Promise<Record<string, unknown>[]> => {
  const client = new Client({ connectionString: address })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end()
  }
}
