import type { AnyRoute } from '../route.ts'

/** The path in Express's syntax: `{id}` becomes `:id`, and the colon of an action is escaped. */
const pathOf = ({ path }: AnyRoute): string => path.replaceAll(':', '\\:').replaceAll(/\{(\w+)\}/g, ':$1')

/** The routes by path. Paths that end in an action come first, since Express would match `inv_…:approve` as an id. */
export const routesByPath = (routes: readonly AnyRoute[]): ReadonlyMap<string, readonly AnyRoute[]> => {
  const isAction = ({ path }: AnyRoute): boolean => path.includes(':')
  return Map.groupBy([...routes.filter(isAction), ...routes.filter(route => !isAction(route))], pathOf)
}

/** The value of Allow. */
export const allowOf = (routes: readonly AnyRoute[]): string =>
  routes.map(({ method }) => (method === 'GET' ? 'GET, HEAD' : method)).join(', ')
