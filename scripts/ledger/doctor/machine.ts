import { stat } from 'node:fs/promises'
import { holderOf } from '../../../src/embedded/dataDirectory.ts'
import { freeBytesOn } from '../../../src/lib/folders.ts'
import type { Config } from '../../../src/settings/config.ts'
import { type Certificate, readCertificates } from '../../../src/settings/certificates.ts'
import { type Check, finding, ok } from './finding.ts'

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
  exists: (await stat(path).catch(() => undefined))?.isDirectory() === true,
  holder_pid: (await holderOf(path)) ?? null,
})

const checkDirectory = ({ path, exists, holder_pid }: Directory): Check => {
  if (!exists) return ok('data directory', `${path} does not exist; npm start would create it, with a new ledger`)
  return ok(
    'data directory',
    holder_pid === null
      ? `${path}, in use by no process`
      : `${path}, in use by process ${holder_pid}; to back it up: npm run -s ledger -- backup --out FOLDER`,
  )
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

const DAY_MS = 24 * 60 * 60 * 1_000
const CERTIFICATE_DAYS_MIN = 30

export const checkCertificate = ({ name, expires_at }: Certificate, nowMs: number): Check => {
  if (expires_at === null)
    return finding('certificate', `The file of ${name} has no certificate that can be read.`, 'Correct the path.')
  const days = Math.floor((Date.parse(expires_at) - nowMs) / DAY_MS)
  if (days >= CERTIFICATE_DAYS_MIN) return ok('certificate', `${name}, until ${expires_at}`)
  const when = days < 0 ? `expired at ${expires_at}` : `expires in ${days} days, at ${expires_at}`
  return finding('certificate', `That of ${name} ${when}.`, 'Renew it; connections fail when it has expired.')
}

export const examineMachine = async ({ dataDir, certificateFiles }: Pick<Config, 'dataDir' | 'certificateFiles'>) => {
  const node = process.versions.node
  const directory = await readDirectory(dataDir)
  const free_bytes = await freeBytesOn(dataDir)
  const certificates = await readCertificates(certificateFiles)
  return {
    machine: { node, data_directory: { ...directory, free_bytes } },
    checks: [
      checkNode(node),
      checkDirectory(directory),
      checkDisk(free_bytes),
      ...certificates.map(one => checkCertificate(one, Date.now())),
    ],
  }
}
export type Machine = Awaited<ReturnType<typeof examineMachine>>['machine']
