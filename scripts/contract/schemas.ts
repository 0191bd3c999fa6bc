import { compareAlternatives } from './alternatives.ts'
import { type Json, type JsonObject, namesOf, objectAt, referenceIn, resolved } from './documents.ts'
import { compareKeyword, isEditorial } from './keywords.ts'
import { compareFields } from './fields.ts'
import type { Finding } from './rules.ts'
import type { Pair, Schemas } from './schemaPair.ts'

/**
 * The comparison of JSON Schemas: requests may accept more than was released, responses and facts may not send more.
 */

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
    compare: compareSchemas,
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
