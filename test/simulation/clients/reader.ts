import type { Caller } from '../http.ts'
import type { Client } from './client.ts'

/** An analyst who follows GET /events from the beginning, page after page, for as long as the run lasts. */
export type Seen = { readonly id: string; readonly key: string; readonly sequence: string; readonly tenant: string }
export type FactReader = {
  readonly caller: Caller
  readonly seen: readonly Seen[]
  /** How often it has come to the end of what there was. */
  readonly rounds: () => number
}

const PAGE_PAUSE_MS = 400
const LIMITS = ['1', '3', '25', '100']

type Page = {
  readonly items: readonly { id: string; partitionkey: string; sequence: string; tenantid: string }[]
  readonly page: { readonly next_cursor: string; readonly has_more: boolean }
}

export const followFacts = (client: Client, caller: Caller, isOver: () => boolean): FactReader => {
  const seen: Seen[] = []
  let rounds = 0
  const follow = async (): Promise<void> => {
    let cursor: string | undefined
    while (!isOver()) {
      const query = { limit: client.random.pick(LIMITS), ...(cursor === undefined ? {} : { cursor }) }
      const answer = await client.attempt({ operation: 'list_events', caller, query })
      if (answer?.status === 200) {
        const { items, page } = answer.body as never as Page
        for (const { id, partitionkey, sequence, tenantid } of items)
          seen.push({ id, key: partitionkey, sequence, tenant: tenantid })
        cursor = page.next_cursor
        if (page.has_more) continue
        rounds += 1
      }
      await client.sleep(PAGE_PAUSE_MS * (0.5 + client.random.next()))
    }
  }
  void follow()
  return { caller, seen, rounds: () => rounds }
}
