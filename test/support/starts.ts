import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { eventually } from './eventually.ts'
import { removeFolder } from './folders.ts'
import { temporaryDirectory } from './service.ts'

const main = new URL('../../src/main.ts', import.meta.url).pathname

export type End = { readonly code: number | null; readonly output: string }

type Start = {
  readonly env: Readonly<Record<string, string>>
  readonly args?: readonly string[]
  /** Called with the whole output, whenever there is more of it. */
  readonly onOutput?: (output: string, child: ChildProcess) => void
}

/** Starts the service in a folder of its own, which is removed when it has ended. */
export const startAlone = async ({ env, args = [], onOutput }: Start) => {
  const folder = await temporaryDirectory()
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', main, ...args], {
    env: { ...process.env, PORT: '0', LEDGER_PROCESSES: '1', LEDGER_DATA_DIR: folder, METRICS_PORT: 'off', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString()
      onOutput?.(output, child)
    })
  const ended = once(child, 'close').then(async ([code]): Promise<End> => {
    await removeFolder(folder)
    return { code: code as number | null, output }
  })
  return { child, output: () => output, ended }
}

/** Starts the service until its output has all of these texts, and resolves to the output. */
export const outputUntil = async (texts: string | readonly string[], env: Start['env']): Promise<string> => {
  const { child, output, ended } = await startAlone({ env })
  try {
    await eventually(() => [texts].flat().every(text => output().includes(text)))
    return output()
  } finally {
    child.kill('SIGKILL')
    await ended
  }
}
