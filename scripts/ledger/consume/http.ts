import { setTimeout as sleep } from 'node:timers/promises'
import { StartupError } from '../../../src/lib/startupError.ts'
import { type Api, CursorExpired, endBefore, type Page, type Start } from './api.ts'
import type { Copy } from './copy.ts'
import { digestOf, entryOf, isSame, topicOf } from './fact.ts'

const POLL_MS = 1_000

export type HttpConsumer = {
  readonly api: Api
  readonly copy: Copy
  readonly follow: boolean
  readonly signal: AbortSignal
  readonly onProgress: () => void
  /** Called when facts that were delivered late may be missing, which a verification shows. */
  readonly onExpiredCursor: () => void
}

/** The position up to which every fact has been seen. On the last page that is the position the service had reached. */
const completeTo = ({ items, page: { has_more, as_of_position } }: Page, before: string): string => {
  // The greatest position, not the last one: a fact that was delivered late has an earlier position than those before
  // it.
  const seen = [before, ...items.map(({ position }) => position)].map(BigInt).reduce((a, b) => (a > b ? a : b))
  const asOf = BigInt(as_of_position)
  return (has_more || seen > asOf ? seen : asOf).toString()
}

export const aheadOfLog = (position: bigint, end: bigint): string =>
  `The copy goes up to position ${position}, and the ledger has facts up to ${end}: it was restored from an older backup. Keep this ` +
  'copy, for it has facts that the ledger has lost, and copy into a new folder.'

/** The positions of another log, or of this one as restored from an older backup, are given to other facts. */
const requireSameLog = async (api: Api, copy: Copy): Promise<void> => {
  const newest = copy.newest()
  if (newest === undefined) return
  const position = BigInt(newest.position)
  const end = await endBefore(api, topicOf(newest), position)
  if (end !== undefined) throw new StartupError(aheadOfLog(position, end))
  const digest = await api.manifest(topicOf(newest), { from: position, to: position })
  if (!isSame(digest, digestOf([entryOf(newest)])))
    throw new StartupError(
      `This copy belongs to tenant ${newest.tenantid}. The tenant that you named has no fact ${newest.id} at position ${position}. ` +
        'If --tenant or --api is wrong, correct it. If they are right, the ledger was restored from an older backup: keep this ' +
        'folder, and copy into a new one.',
    )
}

/** Cursors expire after some days; positions do not, so a consumer that returns later continues from its position. */
const nextPage = async ({ api, copy, onExpiredCursor }: HttpConsumer): Promise<Page> => {
  const { cursor, position } = copy.state()
  const start: Start = { from_position: (BigInt(position) + 1n).toString() }
  if (cursor === null) return await api.page(start)
  try {
    return await api.page({ cursor })
  } catch (error) {
    if (!(error instanceof CursorExpired)) throw error
    onExpiredCursor()
    return await api.page(start)
  }
}

/** Reads until the end, or with `follow` until the signal. A write in progress is completed. */
export const consumeHttp = async (consumer: HttpConsumer): Promise<void> => {
  const { api, copy, follow, signal, onProgress } = consumer
  await requireSameLog(api, copy)
  while (!signal.aborted) {
    const page = await nextPage(consumer)
    const position = completeTo(page, copy.state().position)
    await copy.write(page.items, { cursor: page.page.next_cursor, position })
    onProgress()
    if (page.page.has_more) continue
    if (!follow) return
    await sleep(POLL_MS, undefined, { signal })
  }
}
