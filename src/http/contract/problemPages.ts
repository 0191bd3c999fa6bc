import { z } from 'zod'
import { TEXT_PAGE_POLICY } from '../response/contentSecurityPolicy.ts'
import { type ErrorCode, isErrorCode, PROBLEMS, Problem, retryOf } from '../problems/problemCatalogue.ts'
import { adviceOn } from '../problems/problemDocument.ts'
import { type AnyRoute, route } from '../route.ts'

/** The pages that the `type` of a problem links to: one for each error code, made from the problem catalogue. */

/** The advice with its code marked up. */
const adviceOf = (code: ErrorCode): string => adviceOn(code).replaceAll(/`([^`]+)`/g, '<code>$1</code>')

const pageOf = (code: ErrorCode): string => {
  const { status, category, strategy, title } = PROBLEMS[code]
  const { after_seconds } = retryOf(code)
  const pause = after_seconds === undefined ? '' : `<dt>Retry-After</dt><dd>${after_seconds} s</dd>`
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>${code}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>body{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem}
dt{font-weight:600;margin-top:.75rem}dd{margin:0}code{font-size:1.1em}</style>
<h1><code>${code}</code></h1><p>${title}</p>
<dl><dt>Status</dt><dd>${status}</dd><dt>Category</dt><dd>${category}</dd>
<dt>What to do</dt><dd>${adviceOf(code)}</dd><dt>Retry strategy</dt><dd><code>${strategy}</code></dd>${pause}</dl>
</html>
`
}

const readProblem = route({
  method: 'GET',
  path: '/problems/{code}',
  operationId: 'read_problem',
  summary: 'Read the page of an error code: its meaning and its recovery',
  tag: 'Contract',
  scope: 'none',
  offers: ['text/html'],
  params: z.object({ code: z.string().refine(isErrorCode) }),
  responses: { 200: { description: 'The page as HTML.', schema: z.string(), contentType: 'text/html' } },
  handler: async ({ params: { code } }) => {
    if (!isErrorCode(code)) throw new Problem('resource_not_found')
    const headers = {
      'Cache-Control': 'public, max-age=3600',
      'Content-Security-Policy': TEXT_PAGE_POLICY,
    }
    return { status: 200, body: pageOf(code), contentType: 'text/html; charset=utf-8', headers }
  },
})

export const problemRoutes: readonly AnyRoute[] = [readProblem]
