import { isSame, type JsonObject, listOf, namesOf, objectAt, resolved, textOf, type Operations } from './documents.ts'
import type { Finding, Rule } from './rules.ts'
import { compareSchemas } from './schemas.ts'

/** The comparison of requests: parameters, headers and bodies. A candidate must accept every released request. */

const parametersOf = (document: JsonObject, operation: JsonObject): ReadonlyMap<string, JsonObject> =>
  new Map(
    listOf(operation['parameters']).map(entry => {
      const parameter = resolved(document, entry)
      const name = textOf(parameter['name'])
      // RFC 9110 §5.1: names of headers are the same in upper and lower case.
      return [
        `${textOf(parameter['in'])} ${parameter['in'] === 'header' ? name.toLowerCase() : name}`,
        parameter,
      ] as const
    }),
  )

/** Members of a parameter that are compared by their own rules, or promise nothing. */
const OTHER_MEMBERS = new Set(['name', 'in', 'required', 'schema', 'description', 'example', 'examples', 'deprecated'])

export const compareParameters = ({ was, now, where, documents }: Operations): readonly Finding[] => {
  const [before, after] = [parametersOf(documents.was, was), parametersOf(documents.now, now)]
  const finding = (key: string, rule: Rule, change: string): Finding => ({ rule, where, path: key, change })
  return [...new Set([...before.keys(), ...after.keys()])].flatMap(key => {
    const [released, candidate] = [before.get(key), after.get(key)]
    if (candidate === undefined) return [finding(key, 'parameter-removed', `The parameter ${key} is removed.`)]
    if (released === undefined)
      return candidate['required'] === true
        ? [finding(key, 'parameter-required', `The required parameter ${key} is added.`)]
        : [finding(key, 'parameter-added', `The optional parameter ${key} is added.`)]
    return compareParameter({ was: released, now: candidate, where: `${where} ${key}`, documents })
  })
}

const compareParameter = ({ was, now, where, documents }: Operations): readonly Finding[] => {
  const finding = (rule: Rule, change: string): Finding => ({ rule, where, path: '', change })
  const [isRequired, wasRequired] = [now['required'] === true, was['required'] === true]
  const others = namesOf(was, now).filter(name => !OTHER_MEMBERS.has(name) && !isSame(was[name], now[name]))
  const schemas = { was: was['schema'], now: now['schema'], direction: 'request' as const, where, path: '', documents }
  return [
    ...(isRequired && !wasRequired ? [finding('parameter-required', 'It was optional and is required.')] : []),
    ...(wasRequired && !isRequired ? [finding('parameter-optional', 'It was required and is optional.')] : []),
    ...(isSame(was['deprecated'], now['deprecated']) ? [] : [finding('deprecated', 'Its deprecation is changed.')]),
    ...others.map(name => finding('unknown-change', `${name} was ${textOf(was[name])} and is ${textOf(now[name])}.`)),
    ...compareSchemas(schemas),
  ]
}

const mediaTypesOf = (body: JsonObject): JsonObject => objectAt(body, 'content')

export const compareRequestBody = ({ was, now, where, documents }: Operations): readonly Finding[] => {
  const [before, after] = [resolved(documents.was, was['requestBody']), resolved(documents.now, now['requestBody'])]
  const finding = (rule: Rule, change: string): Finding => ({ rule, where: `${where} body`, path: '', change })
  const isRequired = after['required'] === true && before['required'] !== true
  if (isSame(before, {}) && isSame(after, {})) return []
  if (isSame(after, {})) return [finding('body-removed', 'The body is removed.')]
  if (isSame(before, {})) return [finding(isRequired ? 'body-required' : 'body-added', 'The body is added.')]
  return [
    ...(isRequired ? [finding('body-required', 'The body was optional and is required.')] : []),
    ...compareContents({ was: before, now: after, where: `${where} body`, documents }, 'request'),
  ]
}

/** Compares the media types of a request or response, and the schemas of those that both have. */
export const compareContents = (
  { was, now, where, documents }: Operations,
  direction: 'request' | 'response',
): readonly Finding[] => {
  const [before, after] = [mediaTypesOf(was), mediaTypesOf(now)]
  return namesOf(before, after).flatMap((type): readonly Finding[] => {
    const finding = (rule: Rule, change: string): Finding => ({ rule, where, path: type, change })
    if (!(type in after)) return [finding('media-type-removed', `The media type ${type} is removed.`)]
    if (!(type in before)) return [finding('media-type-added', `The media type ${type} is added.`)]
    const [released, candidate] = [objectAt(before, type)['schema'], objectAt(after, type)['schema']]
    return compareSchemas({ was: released, now: candidate, direction, where, path: '', documents })
  })
}
