import { isSame, type JsonObject, namesOf, objectAt, type Operations, resolved, textOf, textsOf } from './documents.ts'
import { compareContents } from './requests.ts'
import type { Finding, Rule } from './rules.ts'
import { compareSchemas } from './schemas.ts'

/** The comparison of responses. A candidate may send no more than was released. */

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
    const responses = { ...pair, where: `${where} ${status}`, documents }
    return [...compareHeaders(responses), ...compareContents(responses, 'response')]
  })
  return [...statuses, ...compareCodes(before, after, where)]
}

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

type Place = Pick<Finding, 'where' | 'path'>

/** Only the pause may change: whether and how to retry is a promise. */
const compareRetry = (place: Place, was: JsonObject, now: JsonObject): readonly Finding[] => {
  const [{ after_seconds: pauseBefore, ...before }, { after_seconds: pauseAfter, ...after }] = [was, now]
  const change = `The retry guidance was ${textOf(was)} and is ${textOf(now)}.`
  const hasLostPause = pauseBefore !== undefined && pauseAfter === undefined
  if (!isSame(before, after) || hasLostPause) return [{ ...place, rule: 'retry-changed', change }]
  return isSame(pauseBefore, pauseAfter) ? [] : [{ ...place, rule: 'retry-pause-changed', change }]
}

/** Compares `x-problems`: code → status, category and retry guidance. */
export const compareProblems = (was: JsonObject, now: JsonObject): readonly Finding[] =>
  namesOf(was, now).flatMap((code): readonly Finding[] => {
    const place = { where: 'x-problems', path: code }
    const finding = (rule: Rule, change: string): Finding => ({ ...place, rule, change })
    if (!(code in now)) return [finding('error-code-removed', `The error code ${code} is removed.`)]
    if (!(code in was)) return [finding('error-code-added', `The error code ${code} is added.`)]
    const [before, after] = [objectAt(was, code), objectAt(now, code)]
    const changed = (name: string, rule: Rule) =>
      isSame(before[name], after[name])
        ? []
        : [finding(rule, `The ${name} of ${code} was ${textOf(before[name])} and is ${textOf(after[name])}.`)]
    return [
      ...changed('status', 'error-status-changed'),
      ...changed('category', 'error-category-changed'),
      ...compareRetry(place, objectAt(before, 'retry'), objectAt(after, 'retry')),
    ]
  })
