import type { z } from 'zod'
import type { Violation } from '../problems/problemCatalogue.ts'

/** Violations of a schema, as the members of a problem document. */

const escaped = (name: PropertyKey): string => String(name).replaceAll('~', '~0').replaceAll('/', '~1')

/** A JSON pointer (RFC 6901) into the body; for the query, a question mark and the parameter's name. */
export const pointerOf = (path: readonly PropertyKey[], root: string): string =>
  root === '?' ? `?${path.map(String).join('.')}` : path.map(name => `/${escaped(name)}`).join('')

/** The violations of a schema in the order of the document. `within`: the path of the checked value. */
export const violationsOf = (error: z.ZodError, root: string, within: readonly string[] = []): Violation[] =>
  error.issues.flatMap(issue => {
    const path = [...within, ...issue.path]
    if (issue.code !== 'unrecognized_keys')
      return [{ pointer: pointerOf(path, root), code: issue.code, detail: issue.message }]
    return issue.keys.map(key => ({
      pointer: pointerOf([...path, key], root),
      code: 'unrecognized_member',
      detail: 'There is no such field.',
    }))
  })
