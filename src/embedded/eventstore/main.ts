/**
 * The embedded event store as a process: `--database-url URL [--password-file F] --port P [--with-parent]`. Prints its
 * connection string, then `ready`; ends gracefully at SIGTERM, SIGINT, and with `--with-parent` when its stdin closes.
 * The password is in a file because every user can read the arguments of a process.
 */

import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { StartupError } from '../../lib/startupError.ts'
import { openEventStoreNode } from './server.ts'

const PORT_MAX = 65_535
const PORT_DEFAULT = '2113'

const options = {
  'database-url': { type: 'string' },
  'password-file': { type: 'string' },
  port: { type: 'string', default: PORT_DEFAULT },
  'with-parent': { type: 'boolean', default: false },
} as const

const withPassword = (url: string, file: string | undefined): string => {
  if (file === undefined) return url
  const complete = new URL(url)
  complete.password = readFileSync(file, 'utf8').trim()
  return complete.href
}

const readArguments = (): { databaseUrl: string; port: number; withParent: boolean } => {
  const { values } = parseArgs({ options })
  const databaseUrl = values['database-url']
  const port = Number(values.port)
  if (databaseUrl === undefined) throw new StartupError('--database-url is missing.')
  if (!/^\d+$/.test(values.port) || port > PORT_MAX)
    throw new StartupError(`--port must be a number from 0 to ${PORT_MAX}, not ${values.port}.`)
  const complete = withPassword(databaseUrl, values['password-file'])
  return { databaseUrl: complete, port, withParent: values['with-parent'] }
}

/** Resolves at a signal, or when the parent has ended. */
const stopRequested = (withParent: boolean): Promise<void> =>
  new Promise(resolve => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolve())
    process.stdout.on('error', () => resolve())
    if (!withParent) return
    process.stdin.resume()
    for (const event of ['end', 'error'] as const) process.stdin.once(event, () => resolve())
  })

const fail = (error: unknown): never => {
  const reason = error instanceof Error ? error.message : String(error)
  process.stderr.write(`${error instanceof StartupError ? reason : `The event store cannot start: ${reason}`}\n`)
  process.exit(1)
}

try {
  const { databaseUrl, port, withParent } = readArguments()
  const end = stopRequested(withParent)
  const node = await openEventStoreNode({ databaseUrl, port, onReplaced: fail })
  process.stdout.write(`${node.address}\nready\n`)
  await end
  await node.close()
  process.exit(0)
} catch (error) {
  fail(error)
}
