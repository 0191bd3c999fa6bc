import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { eventually } from '../support/eventually.ts'
import { removeFolder } from '../support/folders.ts'
import { temporaryDirectory } from '../support/service.ts'

export const main = new URL('../../src/main.ts', import.meta.url).pathname

/** Starts the service until its output has all of these texts, and resolves to the output. */
export const outputUntil = async (
  texts: string | readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<string> => {
  const folder = await temporaryDirectory()
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', main], {
    env: { ...process.env, PORT: '0', LEDGER_PROCESSES: '1', LEDGER_DATA_DIR: folder, METRICS_PORT: 'off', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
  const ended = once(child, 'close')
  try {
    await eventually(() => [texts].flat().every(text => output.includes(text)))
    return output
  } finally {
    child.kill('SIGKILL')
    await ended
    await removeFolder(folder)
  }
}
