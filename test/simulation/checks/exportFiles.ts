import { createHash } from 'node:crypto'
import { partsOf } from '../../../streams/aggregate.ts'
import { TENANT_CALLERS } from '../clients/callers.ts'
import type { Client } from '../clients/client.ts'
import type { SimulatedLog } from '../eventStore.ts'
import { violation, type Violation } from './violation.ts'

/** The files of exports at the end of a run: each export that has succeeded is downloaded, whole or not at all. */

type Downloaded = { readonly status: number | undefined; readonly sha256: string; readonly isCut: boolean }

const download = async (client: Client, tenant: string, id: string): Promise<Downloaded> => {
  const caller = { tenant, subject: TENANT_CALLERS.find(one => one.tenant === tenant)?.subject ?? '' }
  const answer = await client.sendWithRetries({ operation: 'read_export', caller, id })
  const hash = createHash('sha256')
  const receive = (chunk: string | Uint8Array): Promise<void> => Promise.resolve(void hash.update(chunk))
  let isCut = false
  await answer?.stream?.(receive, new AbortController().signal).catch(() => {
    isCut = true
  })
  answer?.close()
  return { status: answer?.status, sha256: hash.digest('hex'), isCut }
}

/** `lostSince`: the time of the backup from which Postgres was restored. Files that were completed later may be gone. */
export const checkExportFiles = async (
  log: SimulatedLog,
  client: Client,
  lostSince: string | undefined,
): Promise<readonly Violation[]> => {
  const completed = log.events.filter(({ type }) => type === 'ExportCompleted')
  const violations: Violation[] = []
  for (const { stream, data, metadata, storedAt } of completed) {
    const tenant = metadata['tenant'] as string
    const { id } = partsOf(stream)
    const isDeleted = log.stream(stream).some(({ type }) => type === 'OperationExpired')
    const { status, sha256, isCut } = await download(client, tenant, id)
    const isWhole = status === 200 && !isCut && sha256 === data['sha256']
    const isGone = status === 410
    const mayBeLost = lostSince !== undefined && storedAt >= lostSince
    if (isDeleted ? isGone : isWhole || (isGone && mayBeLost)) continue
    const detail = `${id}: ${status}${isCut ? ', cut off' : ''}${isDeleted ? ', deleted' : ''}`
    violations.push(violation('the file of an export is whole, or 410', detail))
  }
  return violations
}
