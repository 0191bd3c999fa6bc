/** `--database-url URL --port P`. The password may be in PGPASSWORD: every user can read the arguments of a process. */

import { parseArgs } from 'node:util'
import { type ChildContext, portArgument, runAsChild } from '../../childProcesses/childMain.ts'
import { StartupError } from '../../lib/startupError.ts'
import { openEventStoreNode } from './server.ts'

const PORT_DEFAULT = '2113'
const CLOSE_MAX_MS = 25_000

const options = {
  'database-url': { type: 'string' },
  port: { type: 'string', default: PORT_DEFAULT },
} as const

const start = async ({ cleanup, fail }: ChildContext): Promise<string> => {
  const { values } = parseArgs({ options })
  const databaseUrl = values['database-url']
  if (databaseUrl === undefined) throw new StartupError('--database-url is missing.')
  const port = portArgument(values.port)
  try {
    const node = await openEventStoreNode({ databaseUrl, port, onReplaced: fail })
    cleanup.defer(node.close)
    return node.address
  } catch (error) {
    if (error instanceof StartupError) throw error
    throw new StartupError(
      `The event store cannot start: ${error instanceof Error ? error.message : String(error)}`,
      error,
    )
  }
}

runAsChild({ start, closeMaxMs: CLOSE_MAX_MS })
