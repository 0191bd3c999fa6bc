import { journals } from '../../projections/index.ts'
import { WrongAnswers } from './answers.ts'
import { createCaller, withClient } from './apiClient.ts'
import { paymentsPath, TENANT, type Walk } from './growthChecks.ts'
import { totalOf } from './processes.ts'
import type { GrowthSide } from './growthSide.ts'
import { load, requestOf } from './loadGenerator.ts'
import { percentile } from './measure.ts'

const PAGE_ITEMS = 50
const READ_MAX_SECONDS = 600
const SHOWN_CHARACTERS_MAX = 500

/** One read: the path of the next request, and whether the answer to it is right. */
export type GrowthRead = {
  readonly name: ReadName
  readonly path: () => string
  readonly isRight: (body: string, path: string) => boolean
}

export const READS = {
  get: 'GET /payments/{id}, each once',
  firstPage: 'GET /payments, first page',
  lastPage: 'GET /payments, last page',
  noMatch: 'GET /payments, filter that matches nothing',
  firstEvents: 'GET /events, first page',
  lastEvents: 'GET /events, last page',
} as const
export type ReadName = keyof typeof READS

/** The median latency of `count` reads, and their CPU time in all processes. Throws if an answer is wrong. */
export const measureRead = async (side: GrowthSide, read: GrowthRead, count: number) => {
  const { headers } = await createCaller(side.service, TENANT)
  let left = count
  let path = ''
  const before = totalOf(await side.meter())
  const sample = await load({
    base: side.service.addresses.api,
    connections: 1,
    seconds: READ_MAX_SECONDS,
    status: 200,
    next: () => {
      if (left-- <= 0) return undefined
      path = read.path()
      return requestOf('GET', path, headers())
    },
    onBody: (_, body) => {
      if (!read.isRight(body, path))
        throw new WrongAnswers([`GET ${path} was answered with ${body.slice(0, SHOWN_CHARACTERS_MAX)}`])
    },
  })
  const after = totalOf(await side.meter())
  return { p50Ms: percentile(sample, 0.5), cpuMs: (after - before) / count }
}

type ListBody = {
  readonly items: readonly { readonly id: string }[]
  readonly page: { readonly has_more: boolean; readonly next_cursor: string | null }
}
const bodyOf = (body: string): ListBody => JSON.parse(body) as ListBody

const LAST_FACTS = `select position::text as place, event->>'id' as id from ${journals.facts.name}
  where tenant_id = $1 order by position desc limit $2`

/** The last facts of the tenant, oldest first. */
const lastFacts = (side: GrowthSide) =>
  withClient(side.service.addresses.postgres, async client => {
    const { rows } = await client.query<{ place: string; id: string }>(LAST_FACTS, [TENANT, PAGE_ITEMS])
    return rows.toReversed()
  })

const PAYMENT = '/payments/'

/** All reads of one size. A payment is read once only, so that no read finds it in a cache. */
export const readsOf = async (side: GrowthSide, walk: Walk): Promise<GrowthRead[]> => {
  const { firstId, lastCursor, lastItems } = walk
  const facts = await lastFacts(side)
  // Ids are random, so that in their order payments of any time follow each other.
  const ids = walk.ids.toSorted()
  let next = 0
  const itemsOf = (body: string): readonly string[] => bodyOf(body).items.map(({ id }) => id)
  return [
    {
      name: 'get',
      path: () => `${PAYMENT}${ids[next++ % ids.length]}`,
      isRight: (body, path) => body.includes(`"id":"${path.slice(PAYMENT.length)}"`),
    },
    {
      name: 'firstPage',
      path: () => paymentsPath(PAGE_ITEMS),
      isRight: body => itemsOf(body).length === PAGE_ITEMS && itemsOf(body)[0] === firstId,
    },
    {
      name: 'lastPage',
      path: () => paymentsPath(PAGE_ITEMS, lastCursor),
      isRight: body => itemsOf(body).length === Math.min(lastItems, PAGE_ITEMS),
    },
    {
      name: 'noMatch',
      path: () => `${paymentsPath(PAGE_ITEMS)}&state=failed`,
      isRight: body => itemsOf(body).length === 0,
    },
    {
      name: 'firstEvents',
      path: () => `/events?limit=${PAGE_ITEMS}`,
      isRight: body => itemsOf(body).length === PAGE_ITEMS && bodyOf(body).page.has_more,
    },
    {
      name: 'lastEvents',
      path: () => `/events?limit=${PAGE_ITEMS}&from_position=${facts[0]?.place}`,
      isRight: body => itemsOf(body).join() === facts.map(({ id }) => id).join(),
    },
  ]
}
