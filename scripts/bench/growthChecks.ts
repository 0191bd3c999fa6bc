import type { Client } from 'pg'
import { journals, projections } from '../../projections/index.ts'
import { PART_AMOUNT } from './apiClient.ts'
import { WrongAnswers } from './answers.ts'
import { load, requestOf } from './loadGenerator.ts'

export const TENANT = 'bench'

/** The payments of the tenant, and their amounts, as each of these places knows them. */
type Totals = { readonly place: string; readonly payments: number; readonly amount: number }

const QUERIES: Readonly<Record<string, string>> = {
  'the read model of payments': `select count(*)::int as payments, sum(amount)::float8 as amount
    from ${projections.payments.name} where tenant_id = $1 and state = 'succeeded'`,
  'payments of any state': `select count(*)::int as payments, sum(amount)::float8 as amount
    from ${projections.payments.name} where tenant_id = $1`,
  'paid invoices': `select (sum(amount_paid) / ${PART_AMOUNT})::int as payments, sum(amount_paid)::float8 as amount
    from ${projections.invoices.name} where tenant_id = $1 and amount_pending = 0 and amount_paid <= amount_due`,
  facts: `select count(*)::int as payments, (count(*) * ${PART_AMOUNT})::float8 as amount
    from ${journals.facts.name} where tenant_id = $1 and type = 'payment.succeeded'`,
}

export const totalsIn = async (client: Client): Promise<Totals[]> => {
  const totals: Totals[] = []
  for (const [place, text] of Object.entries(QUERIES)) {
    const { rows } = await client.query<Omit<Totals, 'place'>>(text, [TENANT])
    totals.push({ place, payments: rows[0]?.payments ?? 0, amount: rows[0]?.amount ?? 0 })
  }
  return totals
}

/** Throws unless all places have the same payments, and at least those that were made. */
export const checkTotals = (totals: readonly Totals[], made: number): void => {
  const payments = totals[0]?.payments ?? 0
  const differences = totals
    .filter(count => count.payments !== payments || count.amount !== payments * PART_AMOUNT)
    .map(
      count => `${count.place}: ${count.payments} payments of ${count.amount}, instead of ${payments * PART_AMOUNT}.`,
    )
  if (payments < made) differences.push(`${made} payments were made, and there are ${payments}.`)
  if (differences.length > 0) throw new WrongAnswers(differences)
}

type Item = { readonly id: string; readonly amount: number; readonly created_at: string }
type PageBody = { readonly items: readonly Item[]; readonly page: { readonly next_cursor: string | null } }

const PAGE_ITEMS = 100
const WALK_MAX_SECONDS = 3_600

/** The path of a page; the first one without a cursor. */
export const paymentsPath = (limit: number, cursor?: string): string =>
  `/payments?limit=${limit}${cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`}`

/** Collects the pages of the list, and throws if an item stands twice or in the wrong order. */
const createCollector = (idsEvery: number) => {
  const ids: string[] = []
  let [payments, amount, lastItems] = [0, 0, 0]
  let previous: Item | undefined
  const inOrder = (before: Item, after: Item): boolean =>
    before.created_at > after.created_at || (before.created_at === after.created_at && before.id > after.id)
  const add = (item: Item): void => {
    if (previous !== undefined && !inOrder(previous, item))
      throw new WrongAnswers([`In the list ${item.id} stands after ${previous.id}.`])
    if (payments % idsEvery === 0) ids.push(item.id)
    payments += 1
    amount += item.amount
    previous = item
  }
  return {
    addPage: (items: readonly Item[]): void => {
      for (const item of items) add(item)
      lastItems = items.length
    },
    result: () => ({
      totals: { place: 'the list of payments', payments, amount },
      /** Ids from the whole list, evenly spaced. */
      ids,
      firstId: ids[0],
      lastItems,
    }),
  }
}

/** Reads the whole list. `idsEvery`: the distance of the ids that are kept. */
export const walkPayments = async (base: string, headers: () => readonly string[], idsEvery: number) => {
  const collector = createCollector(idsEvery)
  let cursor: string | null | undefined
  let lastCursor: string | undefined
  const { latenciesMs } = await load({
    base,
    connections: 1,
    seconds: WALK_MAX_SECONDS,
    status: 200,
    next: () => {
      if (cursor === null) return undefined
      lastCursor = cursor
      return requestOf('GET', paymentsPath(PAGE_ITEMS, cursor), headers())
    },
    onBody: (_, body) => {
      const { items, page } = JSON.parse(body) as PageBody
      collector.addPage(items)
      cursor = page.next_cursor
    },
  })
  return { ...collector.result(), lastCursor, latenciesMs }
}
export type Walk = Awaited<ReturnType<typeof walkPayments>>
