import { stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { holderOf } from '../../../src/embedded/dataDirectory.ts'
import { type Check, finding, ok } from './finding.ts'

/** Checks of the machine: Node, the data directory, the disk. */

const NODE_MAJOR_MIN = 24
const GIB = 1024 ** 3
const FREE_MIN_BYTES = GIB

const checkNode = (version: string): Check =>
  Number(version.split('.')[0]) >= NODE_MAJOR_MIN
    ? ok('node', version)
    : finding('node', `${version} is too old.`, `Use Node ${NODE_MAJOR_MIN} or newer: npm ci installs it.`)

type Directory = { readonly path: string; readonly exists: boolean; readonly holder_pid: number | null }

const readDirectory = async (path: string): Promise<Directory> => ({
  path,
  exists: await stat(path).then(
    stats => stats.isDirectory(),
    () => false,
  ),
  holder_pid: (await holderOf(path)) ?? null,
})

const checkDirectory = ({ path, exists, holder_pid }: Directory): Check => {
  if (!exists) return ok('data directory', `${path} does not exist yet`)
  return ok(
    'data directory',
    holder_pid === null
      ? `${path}, held by nobody`
      : `${path}, held by the process ${holder_pid}; npm run -s ledger -- backup --out FOLDER copies it`,
  )
}

/** The free space of the file system that has, or will have, the directory. */
const freeBytesOn = async (path: string): Promise<number> => {
  try {
    const { bavail, bsize } = await statfs(path)
    return bavail * bsize
  } catch (error) {
    if (dirname(path) === path) throw error
    return await freeBytesOn(dirname(path))
  }
}

const checkDisk = (freeBytes: number): Check => {
  const free = `${(freeBytes / GIB).toFixed(1)} GiB free`
  if (freeBytes >= FREE_MIN_BYTES) return ok('disk', free)
  return finding(
    'disk',
    `Only ${free}.`,
    `Free some disk space: Postgres and the event store stop when the disk is full.`,
  )
}

export type Machine = { readonly node: string; readonly data_directory: Directory & { readonly free_bytes: number } }

export const examineMachine = async (dataDir: string): Promise<{ machine: Machine; checks: readonly Check[] }> => {
  const node = process.versions.node
  const directory = await readDirectory(dataDir)
  const free_bytes = await freeBytesOn(dataDir)
  return {
    machine: { node, data_directory: { ...directory, free_bytes } },
    checks: [checkNode(node), checkDirectory(directory), checkDisk(free_bytes)],
  }
}
