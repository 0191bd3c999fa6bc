import {
  isObject,
  isSame,
  type Json,
  type JsonObject,
  namesOf,
  objectAt,
  referenceIn,
  resolved,
  textOf,
  textsOf,
} from './documents.ts'
import { compareKeyword, isEditorial } from './keywords.ts'
import { type Finding, isBreaking } from './rules.ts'
import { type Pair, report, type Schemas } from './schemaPair.ts'

/** JSON Schemas: requests may accept more than was released, responses and facts may not send more. */

/** The schema with its reference resolved, and with the members of allOf as its own. */
const flattened = (document: JsonObject, node: Json | undefined): JsonObject => {
  const { allOf, ...own } = resolved(document, node)
  if (!Array.isArray(allOf)) return own
  const parts = (allOf as readonly Json[]).map(part => flattened(document, part))
  return parts.reduce((whole, part) => merged(whole, part), own)
}

const merged = (one: JsonObject, other: JsonObject): JsonObject => {
  const [these, those] = [objectAt(one['properties']), objectAt(other['properties'])]
  const both = namesOf(these, those).map(name => {
    const parts = [these[name], those[name]].filter(part => part !== undefined)
    return [name, parts.length === 1 ? (parts[0] ?? {}) : { allOf: parts }] as const
  })
  const required = [...new Set([one['required'], other['required']].flat().filter(name => name !== undefined))]
  return {
    ...one,
    ...other,
    ...(both.length > 0 ? { properties: Object.fromEntries(both) } : {}),
    ...(required.length > 0 ? { required: required } : {}),
  }
}

/** The path begins anew at a component, so that a difference in it is the same one wherever it is used. */
const pathOf = ({ now, was, path }: Pair): string => {
  const reference = referenceIn(was) ?? referenceIn(now)
  return reference === undefined ? path : (reference.split('/').at(-1) ?? path)
}

/** The findings about pairs of components, which many operations refer to. */
const cache = new WeakMap<Pair['documents'], Map<string, readonly Finding[]>>()

export const compareSchemas = (pair: Pair): readonly Finding[] => {
  const [was, now] = [referenceIn(pair.was), referenceIn(pair.now)]
  if (was === undefined || now === undefined) return compareResolved(pair)
  const key = `${pair.direction} ${was} ${now}`
  if (pair.around?.includes(key)) return []
  const ofDocuments = cache.get(pair.documents) ?? new Map<string, readonly Finding[]>()
  cache.set(pair.documents, ofDocuments)
  const findings = ofDocuments.get(key) ?? compareResolved({ ...pair, around: [...(pair.around ?? []), key] })
  ofDocuments.set(key, findings)
  return findings.map(finding => ({ ...finding, where: pair.where }))
}

const compareResolved = (pair: Pair): readonly Finding[] => {
  const { documents } = pair
  const schemas: Schemas = {
    ...pair,
    was: flattened(documents.was, pair.was),
    now: flattened(documents.now, pair.now),
    path: pathOf(pair),
  }
  return [...compareAlternatives(schemas), ...compareFields(schemas), ...compareKeywords(schemas)]
}

/** Keywords that the comparisons of alternatives and fields read. */
const STRUCTURAL = new Set([
  'anyOf',
  'oneOf',
  'properties',
  'required',
  'additionalProperties',
  'items',
  'propertyNames',
])

const compareKeywords = (schemas: Schemas): readonly Finding[] => {
  const { was, now } = schemas
  const hasAlternatives = (schema: JsonObject) => 'anyOf' in schema || 'oneOf' in schema
  // One schema against several: the comparison of alternatives has compared it with each of them.
  if (hasAlternatives(was) !== hasAlternatives(now)) return []
  return namesOf(was, now)
    .filter(name => !STRUCTURAL.has(name) && !isEditorial(name))
    .flatMap(name => compareKeyword(name, schemas))
}

const stepInto = (path: string, step: string): string => (path === '' ? step : `${path}/${step}`)

const inner = (schemas: Schemas, step: string, was: Json | undefined, now: Json | undefined): readonly Finding[] =>
  compareSchemas({ ...schemas, was, now, path: stepInto(schemas.path, step) })

// --- anyOf and oneOf: each released alternative is compared with the one that continues it

const alternativesIn = ({ anyOf, oneOf }: JsonObject): readonly Json[] | undefined =>
  (anyOf ?? oneOf) as readonly Json[] | undefined

const compareAlternatives = (schemas: Schemas): readonly Finding[] => {
  const [was, now] = [alternativesIn(schemas.was), alternativesIn(schemas.now)]
  if (was === undefined && now === undefined) return []
  return comparePaired(schemas, was ?? [schemas.was], now ?? [schemas.now])
}

const compareOne = (schemas: Schemas, was: Json, now: Json): readonly Finding[] =>
  compareSchemas({ ...schemas, was, now })

/** Pairs that nothing breaks come first; what is left is paired in order, so that the difference inside is named. */
const comparePaired = (schemas: Schemas, was: readonly Json[], now: readonly Json[]): readonly Finding[] => {
  const left = [...now]
  const findings: Finding[] = []
  const unpaired = was.filter(released => {
    const index = left.findIndex(alternative => !compareOne(schemas, released, alternative).some(isBreaking))
    if (index < 0) return true
    const [alternative = null] = left.splice(index, 1)
    findings.push(...compareOne(schemas, released, alternative))
    return false
  })
  const changed = unpaired.slice(0, left.length)
  findings.push(...changed.flatMap((released, index) => compareOne(schemas, released, left[index] ?? null)))
  const removed = unpaired.slice(changed.length)
  const added = left.slice(changed.length)
  return [
    ...findings,
    ...removed.map(alternative => lost(schemas, alternative)),
    ...added.map(alternative => gained(schemas, alternative)),
  ]
}

const lost = (schemas: Schemas, alternative: Json): Finding =>
  report(schemas)(
    schemas.direction === 'request' ? 'alternative-removed' : 'alternative-unused',
    `The alternative ${textOf(alternative)} is removed.`,
  )

const gained = (schemas: Schemas, alternative: Json): Finding =>
  report(schemas)(
    schemas.direction === 'request' ? 'alternative-accepted' : 'alternative-added',
    `The alternative ${textOf(alternative)} is added.`,
  )

// --- Objects and arrays: fields, whether they are required, other fields, and items

const compareFields = (schemas: Schemas): readonly Finding[] => [
  ...compareProperties(schemas),
  ...compareOthers(schemas),
  ...compareInner(schemas, 'items', '*'),
  ...compareInner(schemas, 'propertyNames', 'names of its members'),
]

const compareProperties = (schemas: Schemas): readonly Finding[] => {
  const [was, now] = [objectAt(schemas.was['properties']), objectAt(schemas.now['properties'])]
  return namesOf(was, now).flatMap(name => {
    const path = stepInto(schemas.path, name)
    const finding = report({ ...schemas, path })
    const required = requiredIn(schemas, name)
    if (!(name in now)) return [finding('field-removed', `The field ${name} is removed.`)]
    if (!(name in was))
      return schemas.direction === 'request' && required.now
        ? [finding('required-field-added', `The required field ${name} is added.`)]
        : [finding('field-added', `The field ${name} is added.`)]
    return [...compareRequired(schemas, name), ...inner(schemas, name, was[name], now[name])]
  })
}

const requiredIn = ({ was, now }: Schemas, name: string) => ({
  was: textsOf(was['required']).includes(name),
  now: textsOf(now['required']).includes(name),
})

const compareRequired = (schemas: Schemas, name: string): readonly Finding[] => {
  const { was, now } = requiredIn(schemas, name)
  if (was === now) return []
  const finding = report({ ...schemas, path: stepInto(schemas.path, name) })
  const isRequest = schemas.direction === 'request'
  if (now)
    return [
      finding(isRequest ? 'field-required' : 'field-always-sent', `The field ${name} was optional and is required.`),
    ]
  return [
    finding(isRequest ? 'field-optional' : 'field-no-longer-sent', `The field ${name} was required and is optional.`),
  ]
}

/** Absent and empty schemas permit everything. */
const othersIn = (value: Json | undefined): Json => {
  const isAnything = value === undefined || (isObject(value) && Object.keys(value).length === 0)
  return isAnything ? true : value
}

const compareOthers = (schemas: Schemas): readonly Finding[] => {
  const [was, now] = [othersIn(schemas.was['additionalProperties']), othersIn(schemas.now['additionalProperties'])]
  const isAccepting = schemas.direction === 'request'
  const finding = report(schemas)
  if (isSame(was, now)) return []
  if (isObject(was) && isObject(now)) return inner(schemas, 'other members', was, now)
  if (now === false || (isObject(now) && was === true && isAccepting))
    return [finding('closed-to-fields', 'Undeclared fields were permitted.')]
  if (isObject(was) && !isAccepting) return [finding('type-changed', 'Undeclared fields had a schema.')]
  return [finding('opened-to-fields', 'Undeclared fields are permitted.')]
}

const compareInner = (schemas: Schemas, keyword: 'items' | 'propertyNames', step: string): readonly Finding[] =>
  keyword in schemas.was || keyword in schemas.now
    ? inner(schemas, step, schemas.was[keyword], schemas.now[keyword])
    : []
