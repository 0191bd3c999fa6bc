import type { z } from 'zod'
import type { Violation } from '../response/problemCatalogue.ts'

const escaped = (name: PropertyKey): string => String(name).replaceAll('~', '~0').replaceAll('/', '~1')

/** JSON pointer (RFC 6901) into the body; for the query, the parameter's name behind a question mark. */
export const pointerOf = (path: readonly PropertyKey[], root: string): string =>
  root === '?' ? `?${path.map(String).join('.')}` : path.map(name => `/${escaped(name)}`).join('')

/** Every violation that the schema found, in the order of the document. `within` is where the checked value lies. */
export const violationsOf = (error: z.ZodError, root: string, within: readonly string[] = []): Violation[] =>
  error.issues.flatMap(issue => {
    const path = [...within, ...issue.path]
    if (issue.code !== 'unrecognized_keys')
      return [{ pointer: pointerOf(path, root), code: issue.code, detail: issue.message }]
    return issue.keys.map(key => ({
      pointer: pointerOf([...path, key], root),
      code: 'unrecognized_member',
      detail: 'There is no such member.',
    }))
  })
