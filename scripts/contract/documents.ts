import { isDeepStrictEqual } from 'node:util'

export type Json = string | number | boolean | null | readonly Json[] | JsonObject
export type JsonObject = { readonly [name: string]: Json }

/** One dated contract: both documents. The schemas of the facts are components of the second one. */
export type Contract = { readonly openapi: JsonObject; readonly asyncapi: JsonObject }

/** A released document or part of one, and its candidate. */
export type Documents = { readonly was: JsonObject; readonly now: JsonObject }

export type Operations = {
  readonly was: JsonObject
  readonly now: JsonObject
  readonly where: string
  readonly documents: Documents
}

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The object at this member; an empty one if there is none. */
export const objectAt = (value: Json | undefined, ...path: readonly string[]): JsonObject => {
  const member = path.reduce<Json | undefined>((node, name) => (isObject(node) ? node[name] : undefined), value)
  return isObject(member) ? member : {}
}

export const listOf = (value: Json | undefined): readonly Json[] => (Array.isArray(value) ? (value as Json[]) : [])
export const textsOf = (value: Json | undefined): readonly string[] => listOf(value).map(String)
export const textOf = (value: Json | undefined): string =>
  typeof value === 'string' ? value : JSON.stringify(value ?? null)

export const isSame = (a: Json | undefined, b: Json | undefined): boolean => isDeepStrictEqual(a, b)

/** The names of both objects, each once, in the order of the first one. */
export const namesOf = (first: JsonObject, second: JsonObject): readonly string[] => [
  ...new Set([...Object.keys(first), ...Object.keys(second)]),
]

const unescaped = (name: string): string => decodeURIComponent(name).replaceAll('~1', '/').replaceAll('~0', '~')

export const referenceIn = (node: Json | undefined): string | undefined => {
  const reference = objectAt(node)['$ref']
  return typeof reference === 'string' ? reference : undefined
}

/** The target of a reference, with the members beside the reference over it; another node is returned unchanged. */
export const resolved = (document: JsonObject, node: Json | undefined): JsonObject => {
  const reference = referenceIn(node)
  if (reference === undefined) return objectAt(node)
  const { $ref: _, ...beside } = objectAt(node)
  return { ...resolved(document, objectAt(document, ...reference.split('/').slice(1).map(unescaped))), ...beside }
}

const referencesIn = (node: Json | undefined): readonly string[] => {
  if (Array.isArray(node)) return (node as readonly Json[]).flatMap(referencesIn)
  if (!isObject(node)) return []
  const own = referenceIn(node)
  return [...(own === undefined ? [] : [own]), ...Object.values(node).flatMap(referencesIn)]
}

export const danglingReferences = (document: JsonObject): readonly string[] =>
  [...new Set(referencesIn(document))].filter(
    reference => Object.keys(resolved(document, { $ref: reference })).length === 0,
  )
