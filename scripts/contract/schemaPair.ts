import type { Json, JsonObject } from './documents.ts'
import type { Finding, Rule } from './rules.ts'

/** A released schema and its candidate, as the parts of the comparison pass them on. */

/** `event`: as a response, except that its lists of values are closed, since archives are read again. */
export type Direction = 'request' | 'response' | 'event'

export type Pair = {
  readonly was: Json | undefined
  readonly now: Json | undefined
  readonly direction: Direction
  readonly where: string
  readonly path: string
  readonly documents: { readonly was: JsonObject; readonly now: JsonObject }
  /** The pairs of references around this one, so that a recursive schema ends. */
  readonly around?: readonly string[]
}

/** Both schemas of a pair, with references and allOf resolved. */
export type Schemas = Omit<Pair, 'was' | 'now'> & {
  readonly was: JsonObject
  readonly now: JsonObject
  /** Compares inner schemas. */
  readonly compare: (pair: Pair) => readonly Finding[]
}

export const report =
  ({ where, path }: Pick<Pair, 'where' | 'path'>) =>
  (rule: Rule, change: string): Finding => ({ rule, where, path, change })

export const stepInto = (path: string, step: string): string => (path === '' ? step : `${path}/${step}`)

/** Compares inner schemas at the given step of the path. */
export const inner = (
  schemas: Schemas,
  step: string,
  was: Json | undefined,
  now: Json | undefined,
): readonly Finding[] => schemas.compare({ ...schemas, was, now, path: stepInto(schemas.path, step) })
