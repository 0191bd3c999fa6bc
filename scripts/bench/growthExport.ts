import { setTimeout as sleep } from 'node:timers/promises'
import { WrongAnswers } from './answers.ts'
import { createCaller, withClient } from './apiClient.ts'
import { TENANT } from './growthChecks.ts'
import { totalOf } from './cpu.ts'
import type { GrowthSide } from './growthSide.ts'

/** An export of all payments of one size. */

const POLL_MS = 100
const EXPORT_MAX_MS = 1_800_000

type Operation = { readonly id: string; readonly status?: string; readonly state?: string }
export type ExportFigures = { readonly usPerRow: number; readonly cpuUsPerRow: number }

const jsonOf = async (response: Response): Promise<unknown> => {
  if (!response.ok) throw new Error(`${response.url}: ${await response.text()}`)
  return response.json()
}

/**
 * Throws unless the manifest has exactly these rows. The file is removed, so that repeated runs do not fill the disk.
 */
export const measureExport = async (side: GrowthSide, rows: number): Promise<ExportFigures> => {
  const { api, postgres } = side.service.addresses
  const { headers } = await createCaller(side.service, TENANT)
  const authorization = headers()[0]?.replace('authorization: ', '') ?? ''
  const request = async (path: string, init: RequestInit = {}): Promise<unknown> =>
    jsonOf(await fetch(`${api}${path}`, { ...init, headers: { authorization, 'content-type': 'application/json' } }))
  const cpuBefore = totalOf(await side.meter())
  const begunMs = performance.now()
  const body = JSON.stringify({ resource: 'payments', format: 'csv' })
  const { id } = (await request('/exports', { method: 'POST', body })) as Operation
  for (let state = ''; state !== 'succeeded'; await sleep(POLL_MS)) {
    state = ((await request(`/operations/${id}`)) as Operation).state ?? ''
    if (state === 'failed' || performance.now() - begunMs > EXPORT_MAX_MS) throw new Error(`The export is ${state}.`)
  }
  const ms = performance.now() - begunMs
  const cpuMs = totalOf(await side.meter()) - cpuBefore
  const { row_count } = (await request(`/exports/${id}/manifest`)) as { readonly row_count: number }
  if (row_count !== rows) throw new WrongAnswers([`An export of ${rows} payments has ${row_count} rows.`])
  await withClient(postgres, client => client.query('delete from export_chunks where operation_id = $1', [id]))
  return { usPerRow: (1_000 * ms) / rows, cpuUsPerRow: (1_000 * cpuMs) / rows }
}
