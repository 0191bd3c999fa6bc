import { setTimeout as sleep } from 'node:timers/promises'
import { type Api, CursorLost, type Page, type Start } from './api.ts'
import type { Copy } from './copy.ts'

/** Reads GET /events page by page into the copy, starting at its progress. */

const POLL_MS = 1_000

export type HttpConsumer = {
  readonly api: Api
  readonly copy: Copy
  readonly follow: boolean
  readonly signal: AbortSignal
  /** Called after each written page. */
  readonly onProgress: () => void
}

/** The position up to which every fact has been seen. On the last page that is the position the service had reached. */
const completeTo = ({ items, page: { has_more, as_of_position } }: Page, before: string): string => {
  // The greatest position, not the last one: a fact that was delivered late has an earlier position than those before
  // it.
  const seen = [before, ...items.map(({ position }) => position)].map(BigInt).reduce((a, b) => (a > b ? a : b))
  const known = BigInt(as_of_position)
  return (has_more || seen > known ? seen : known).toString()
}

/** Cursors expire after some days; positions do not, so a consumer that returns later continues from its position. */
const nextPage = async (api: Api, { cursor, position }: { cursor: string | null; position: string }): Promise<Page> => {
  const start: Start = { from_position: (BigInt(position) + 1n).toString() }
  if (cursor === null) return await api.page(start)
  try {
    return await api.page({ cursor })
  } catch (error) {
    if (error instanceof CursorLost) return await api.page(start)
    throw error
  }
}

/** Reads until the end, or with `follow` until the signal. A write in progress is completed. */
export const consumeHttp = async ({ api, copy, follow, signal, onProgress }: HttpConsumer): Promise<void> => {
  while (!signal.aborted) {
    const page = await nextPage(api, copy.state())
    const position = completeTo(page, copy.state().position)
    await copy.write(page.items, { cursor: page.page.next_cursor, position })
    onProgress()
    if (page.page.has_more) continue
    if (!follow) return
    await sleep(POLL_MS, undefined, { signal })
  }
}
