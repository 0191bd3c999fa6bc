import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const KIB_PER_MIB = 1024

const run = promisify(execFile)

/** The resident memory of another process in MiB. */
export const residentMib = async (pid: number | undefined): Promise<number> => {
  const { stdout } = await run('ps', ['-o', 'rss=', '-p', String(pid)])
  return Number(stdout.trim()) / KIB_PER_MIB
}
