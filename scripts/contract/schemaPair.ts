import type { Json, JsonObject } from './documents.ts'
import type { Finding, Rule } from './rules.ts'

/** `event`: as a response, except that its lists of values are closed, since archives are read again. */
type Direction = 'request' | 'response' | 'event'

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
}

export const report =
  ({ where, path }: Pick<Pair, 'where' | 'path'>) =>
  (rule: Rule, change: string): Finding => ({ rule, where, path, change })
