import {
  type Documents,
  isSame,
  type JsonObject,
  listOf,
  namesOf,
  objectAt,
  type Operations,
  textOf,
} from './documents.ts'
import { compareAuthorization } from './authorization.ts'
import { compareParameters, compareRequestBody } from './requests.ts'
import { compareResponses } from './responses.ts'
import type { Finding, Rule } from './rules.ts'

const METHODS = ['get', 'post', 'put', 'patch', 'delete', 'head', 'options', 'trace']

/** `POST /payments` → operation; parameters of the path belong to each of its operations. */
const operationsOf = (document: JsonObject): ReadonlyMap<string, JsonObject> => {
  const paths = Object.entries(objectAt(document, 'paths'))
  const all = paths.flatMap(([path, item]) =>
    METHODS.filter(method => method in objectAt(item)).map(method => {
      const operation = objectAt(item, method)
      const parameters = [...listOf(objectAt(item)['parameters']), ...listOf(operation['parameters'])]
      return [`${method.toUpperCase()} ${path}`, { ...operation, parameters }] as const
    }),
  )
  return new Map(all)
}

export const compareOperations = (documents: Documents): readonly Finding[] => {
  const [was, now] = [operationsOf(documents.was), operationsOf(documents.now)]
  const added = [...now.keys()].filter(where => !was.has(where))
  return [
    ...[...was].flatMap(([where, operation]) => {
      const candidate = now.get(where)
      if (candidate === undefined) return [finding(where, 'endpoint-removed', 'The endpoint is removed.')]
      return compareOperation({ was: operation, now: candidate, where, documents })
    }),
    ...added.map(where => finding(where, 'endpoint-added', 'The endpoint is added.')),
  ]
}

const finding = (where: string, rule: Rule, change: string): Finding => ({ rule, where, path: '', change })

type Compare = (operations: Operations) => readonly Finding[]

const changed =
  (name: string, rule: Rule): Compare =>
  ({ was, now, where }) =>
    isSame(was[name], now[name])
      ? []
      : [finding(where, rule, `${name} was ${textOf(was[name])} and is ${textOf(now[name])}.`)]

const compareDeadline: Compare = ({ was, now, where }) => {
  const [before, after] = [Number(was['x-deadline-seconds']), Number(now['x-deadline-seconds'])]
  if (before === after) return []
  const rule: Rule = after < before ? 'limit-narrowed' : 'limit-widened'
  return [finding(where, rule, `The deadline was ${before} s and is ${after} s.`)]
}

const ignored: Compare = () => []

const MEMBERS: Readonly<Record<string, Compare>> = {
  summary: ignored,
  description: ignored,
  tags: ignored,
  externalDocs: ignored,
  operationId: changed('operationId', 'operation-id-changed'),
  security: compareAuthorization,
  'x-credentials': ignored,
  'x-scopes': ignored,
  'x-rate-class': changed('x-rate-class', 'rate-class-changed'),
  'x-order': changed('x-order', 'page-order-changed'),
  'x-deadline-seconds': compareDeadline,
  deprecated: changed('deprecated', 'deprecated'),
  parameters: compareParameters,
  requestBody: compareRequestBody,
  responses: compareResponses,
}

const compareOperation: Compare = operations =>
  [...new Set([...Object.keys(MEMBERS), ...namesOf(operations.was, operations.now)])].flatMap(name =>
    (MEMBERS[name] ?? changed(name, 'unknown-change'))(operations),
  )
