import { type Filters, type PageRequest, type PageRow, pageOf, type Query } from '../listQueries.ts'
import { type ApiKeyRow, apiKeys } from './projection.ts'

/** The view of an API key. `expired` follows from the clock; there is no event for it. */
export const API_KEY_STATES = ['active', 'revoked', 'expired'] as const
export type ShownState = (typeof API_KEY_STATES)[number]

/** `now`: RFC 3339. */
export const shownState = ({ state, expires_at }: Pick<ApiKeyRow, 'state' | 'expires_at'>, now: string): ShownState =>
  state === 'active' && Date.parse(expires_at) <= Date.parse(now) ? 'expired' : state

const storedFilters = ({ state, ...filters }: Filters, now: string): Filters => {
  if (state === 'expired') return { ...filters, state: 'active', expires_until: now }
  return state === 'active' ? { ...filters, state, expires_after: now } : { ...filters, state }
}

/** The page as of `now`, filtered by the state that is shown. */
export const apiKeyPage =
  (now: string) =>
  (request: PageRequest): Query<PageRow<ApiKeyRow>> =>
    pageOf(apiKeys, { ...request, filters: storedFilters(request.filters, now) })
