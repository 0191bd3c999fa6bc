import { setTimeout as sleep } from 'node:timers/promises'

const EVERY_MS = 100

type Operation = { readonly id: string; readonly state: string; readonly result?: { readonly href: string } | null }
type Requested = { readonly status: number; readonly operation: Operation }

/** The status of the answer, which is read whole; `failed` without one. */
export const outcomeOf = (url: string, token: string | undefined, signal: AbortSignal): Promise<string> =>
  fetch(url, { headers: headersOf(token), signal }).then(
    async answer => {
      await answer.arrayBuffer()
      return String(answer.status)
    },
    () => 'failed',
  )

export const headersOf = (token: string | undefined): Record<string, string> => ({ authorization: `Bearer ${token}` })

export const requestExport = async (api: string, token: string | undefined): Promise<Requested> => {
  const headers = { ...headersOf(token), 'content-type': 'application/json' }
  const body = JSON.stringify({ resource: 'orders', format: 'csv' })
  const answer = await fetch(`${api}/exports`, { method: 'POST', headers, body })
  return { status: answer.status, operation: (await answer.json()) as Operation }
}

/** The operation when it has ended, or as it is when the signal aborts. */
export const endOf = async (
  api: string,
  token: string | undefined,
  { id }: Operation,
  signal?: AbortSignal,
): Promise<Operation> => {
  for (;;) {
    const answer = await fetch(`${api}/operations/${id}`, { headers: headersOf(token) })
    const operation = (await answer.json()) as Operation
    if (signal?.aborted || !['pending', 'running'].includes(operation.state)) return operation
    await sleep(EVERY_MS)
  }
}
