import { z } from 'zod'
import { type Call, expectBody, type Request } from './apiClient.ts'

/** Reads whole lists of the API. */

const PAGE = 100

/** Every item of a list, page by page. */
export const listAll = async <T>(call: Call, path: string, item: z.ZodType<T>): Promise<T[]> => {
  const schema = z.object({ items: z.array(item), page: z.object({ next_cursor: z.string().nullable() }) })
  const all: T[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const query = new URLSearchParams({ limit: String(PAGE), ...(cursor === '' ? {} : { cursor }) })
    const request: Request = { method: 'GET', path: `${path}?${query.toString()}` }
    const { items, page } = expectBody(request, await call(request), schema)
    all.push(...items)
    cursor = page.next_cursor
  }
  return all
}
