import { type JsonObject, namesOf, objectAt, resolved, textsOf, type Operations } from './documents.ts'
import { compareRetry } from './errors.ts'
import { compareContents } from './requests.ts'
import type { Finding, Rule } from './rules.ts'
import { compareSchemas } from './schemas.ts'

/**
 * The comparison of responses: statuses, headers, bodies and error codes. A candidate may send no more than was
 * released.
 */

const ERROR_MIN = 400
/** Sent only to a request that asks for them by a header. */
const ON_REQUEST = ['206', '304']

const responsesOf = (document: JsonObject, operation: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(objectAt(operation, 'responses')).map(([status, response]) => [
      status,
      resolved(document, response),
    ]),
  )

export const compareResponses = ({ was, now, where, documents }: Operations): readonly Finding[] => {
  const [before, after] = [responsesOf(documents.was, was), responsesOf(documents.now, now)]
  const statuses = namesOf(before, after).flatMap((status): readonly Finding[] => {
    const finding = (rule: Rule, change: string): Finding => ({ rule, where, path: status, change })
    const hasCodes = textsOf(objectAt(before, status)['x-error-codes']).length > 0
    // Where the codes of a status are gone, the comparison of the codes says so.
    if (!(status in after)) return hasCodes ? [] : [finding('status-removed', `The status ${status} is removed.`)]
    if (!(status in before)) {
      const isHarmless = Number(status) >= ERROR_MIN || ON_REQUEST.includes(status)
      return [finding(isHarmless ? 'error-status-added' : 'status-added', `The status ${status} is added.`)]
    }
    const pair = { was: objectAt(before, status), now: objectAt(after, status) }
    return compareResponse({ ...pair, where: `${where} ${status}`, documents })
  })
  return [...statuses, ...compareCodes(before, after, where)]
}

const compareResponse = (responses: Operations): readonly Finding[] => [
  ...compareHeaders(responses),
  ...compareContents(responses, 'response'),
]

const compareHeaders = ({ was, now, where, documents }: Operations): readonly Finding[] => {
  const [before, after] = [objectAt(was, 'headers'), objectAt(now, 'headers')]
  return namesOf(before, after).flatMap((name): readonly Finding[] => {
    const finding = (rule: Rule, change: string): Finding => ({ rule, where, path: name, change })
    if (!(name in after)) return [finding('header-removed', `The header ${name} is removed.`)]
    if (!(name in before)) return [finding('header-added', `The header ${name} is added.`)]
    const [released, candidate] = [resolved(documents.was, before[name]), resolved(documents.now, after[name])]
    const isOptional = released['required'] === true && candidate['required'] !== true
    const schemas = { was: released['schema'], now: candidate['schema'], direction: 'response' as const, documents }
    return [
      ...(isOptional ? [finding('header-optional', `The header ${name} was required and is optional.`)] : []),
      ...compareSchemas({ ...schemas, where: `${where} ${name}`, path: '' }),
    ]
  })
}

/** The status and the retry guidance of each error code of an operation. */
const codesOf = (responses: JsonObject) =>
  new Map(
    Object.entries(responses).flatMap(([status, response]) =>
      textsOf(objectAt(response)['x-error-codes']).map(code => {
        const retry = objectAt(response, 'x-retry', code)
        return [code, { status, retry }] as const
      }),
    ),
  )

const compareCodes = (before: JsonObject, after: JsonObject, where: string): readonly Finding[] => {
  const [was, now] = [codesOf(before), codesOf(after)]
  const finding = (path: string, rule: Rule, change: string): Finding => ({ rule, where, path, change })
  return [...new Set([...was.keys(), ...now.keys()])].flatMap((code): readonly Finding[] => {
    const [released, candidate] = [was.get(code), now.get(code)]
    if (candidate === undefined) return [finding(code, 'error-code-removed', `The error code ${code} is removed.`)]
    if (released === undefined) return [finding(code, 'error-code-added', `The error code ${code} is added.`)]
    const change = `The status of ${code} was ${released.status} and is ${candidate.status}.`
    return [
      ...(released.status === candidate.status ? [] : [finding(code, 'error-status-changed', change)]),
      ...compareRetry({ where, path: code }, released.retry, candidate.retry),
    ]
  })
}
