import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'

/** The exit code of the health check in Dockerfile, for a service at this port of the machine. */
export const healthCheckOfImage = async (port: string): Promise<number> => {
  const dockerfile = await readFile(new URL('../../Dockerfile', import.meta.url), 'utf8')
  const command = /^HEALTHCHECK .*\\\n +CMD (\[.*\])$/m.exec(dockerfile)?.[1] ?? '[]'
  const [, ...args] = JSON.parse(command) as string[]
  const [code] = await once(spawn(process.execPath, args, { env: { PORT: port } }), 'exit')
  return code as number
}
