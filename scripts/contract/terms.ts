import { isSame, type JsonObject, listOf, namesOf, objectAt, textOf, type Documents } from './documents.ts'
import { compareProblems } from './responses.ts'
import type { Finding, Rule } from './rules.ts'

const finding = (where: string, path: string, rule: Rule, change: string): Finding => ({ rule, where, path, change })

/** Upper limits by name; a missing one is unlimited. */
const compareNumbers = (where: string, was: JsonObject, now: JsonObject): readonly Finding[] =>
  namesOf(was, now).flatMap(name => {
    const [before, after] = [Number(was[name] ?? Infinity), Number(now[name] ?? Infinity)]
    if (before === after) return []
    const rule: Rule = after < before ? 'limit-narrowed' : 'limit-widened'
    return [finding(where, name, rule, `${name} was ${textOf(was[name])} and is ${textOf(now[name])}.`)]
  })

/** A limit of requests in a window is narrower with fewer requests, or with the same ones in a longer window. */
const compareRates = (was: JsonObject, now: JsonObject): readonly Finding[] =>
  namesOf(was, now).flatMap(name => {
    const [before, after] = [objectAt(was, name), objectAt(now, name)]
    if (isSame(before, after)) return []
    const requests = (limit: JsonObject): number => Number(limit['requests'] ?? Infinity)
    const perSecond = (limit: JsonObject): number => requests(limit) / Number(limit['window_seconds'] ?? 1)
    const isNarrower = requests(after) < requests(before) || perSecond(after) < perSecond(before)
    const rule: Rule = isNarrower ? 'limit-narrowed' : 'limit-widened'
    return [finding('x-rate-limits', name, rule, `It was ${textOf(before)} and is ${textOf(after)}.`)]
  })

const scopesOf = (scheme: JsonObject): readonly string[] =>
  Object.values(objectAt(scheme, 'flows')).flatMap(flow => Object.keys(objectAt(flow, 'scopes')))

/** A security scheme without its descriptions and the descriptions of its scopes. */
const mechanismOf = ({ description: _, flows, ...scheme }: JsonObject): JsonObject => ({
  ...scheme,
  flows: Object.fromEntries(
    Object.entries(objectAt(flows)).map(([name, flow]) => {
      const { scopes: __, ...addresses } = objectAt(flow)
      return [name, addresses]
    }),
  ),
})

export const compareSecuritySchemes = (was: JsonObject, now: JsonObject): readonly Finding[] =>
  Object.keys(was).flatMap(name => {
    const [before, after] = [objectAt(was, name), objectAt(now, name)]
    const where = `security scheme ${name}`
    const [scopesBefore, scopesAfter] = [scopesOf(before), scopesOf(after)]
    const lost = scopesBefore.filter(scope => !scopesAfter.includes(scope))
    const gained = scopesAfter.filter(scope => !scopesBefore.includes(scope))
    return [
      ...(isSame(mechanismOf(before), mechanismOf(after))
        ? []
        : [
            finding(
              where,
              '',
              'security-scheme-changed',
              `It was ${textOf(mechanismOf(before))} and is ${textOf(mechanismOf(after))}.`,
            ),
          ]),
      ...[...new Set(lost)].map(scope => finding(where, scope, 'scope-changed', `The scope ${scope} is removed.`)),
      ...[...new Set(gained)].map(scope => finding(where, scope, 'scope-added', `The scope ${scope} is added.`)),
    ]
  })

const serversOf = (document: JsonObject): readonly string[] =>
  listOf(document['servers']).map(server => textOf(objectAt(server)['url']))

const compareServers = ({ was, now }: Documents): readonly Finding[] =>
  serversOf(was)
    .filter(url => !serversOf(now).includes(url))
    .map(url => finding('servers', url, 'server-changed', `The server ${url} is removed.`))

/** Members of the document that are compared elsewhere, or promise nothing. */
const OTHER_MEMBERS = new Set([
  ...['openapi', 'info', 'tags', 'paths', 'components', 'servers', 'externalDocs'],
  ...['x-problems', 'x-limits', 'x-rate-limits'],
])

export const compareTerms = ({ was, now }: Documents): readonly Finding[] => [
  ...compareProblems(objectAt(was, 'x-problems'), objectAt(now, 'x-problems')),
  ...compareNumbers('x-limits', objectAt(was, 'x-limits'), objectAt(now, 'x-limits')),
  ...compareRates(objectAt(was, 'x-rate-limits'), objectAt(now, 'x-rate-limits')),
  ...compareSecuritySchemes(
    objectAt(was, 'components', 'securitySchemes'),
    objectAt(now, 'components', 'securitySchemes'),
  ),
  ...compareServers({ was, now }),
  ...namesOf(was, now)
    .filter(name => !OTHER_MEMBERS.has(name) && !isSame(was[name], now[name]))
    .map(name =>
      finding('the document', name, 'unknown-change', `${name} was ${textOf(was[name])} and is ${textOf(now[name])}.`),
    ),
]
