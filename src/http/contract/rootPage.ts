import { z } from 'zod'
import { TEXT_PAGE_POLICY } from '../response/contentSecurityPolicy.ts'
import { type AnyRoute, route } from '../route.ts'

/** GET /: what this is, and where to go on. A page for browsers, links for other clients. */

const LINKS = {
  console: { href: '/console', says: 'The console: look at orders, invoices, payments, facts and books' },
  docs: { href: '/docs', says: 'The contract, to read and to try' },
  openapi: { href: '/openapi.json', says: 'The contract as OpenAPI' },
  asyncapi: { href: '/asyncapi.json', says: 'The published facts as AsyncAPI' },
  ready: { href: '/readyz', says: 'Whether this process can serve requests' },
} as const

const linkSchema = ({ says }: { readonly says: string }) => z.string().meta({ description: `${says}: a path.` })

const rootSchema = z
  .object({
    name: z.literal('Payment ledger').meta({ description: 'The name of this service.' }),
    links: z
      .object({
        console: linkSchema(LINKS.console),
        docs: linkSchema(LINKS.docs),
        openapi: linkSchema(LINKS.openapi),
        asyncapi: linkSchema(LINKS.asyncapi),
        ready: linkSchema(LINKS.ready),
      })
      .meta({ description: 'Where to continue.' }),
  })
  .meta({ id: 'Root' })

const body: z.input<typeof rootSchema> = {
  name: 'Payment ledger',
  links: {
    console: LINKS.console.href,
    docs: LINKS.docs.href,
    openapi: LINKS.openapi.href,
    asyncapi: LINKS.asyncapi.href,
    ready: LINKS.ready.href,
  },
}

const PAGE = `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Payment ledger</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<style>body{font:1rem/1.6 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem}li{margin:.25rem 0}
.main{display:inline-block;padding:.5rem 1rem;border:1px solid;border-radius:.4rem;font-weight:600}</style>
<h1>Payment ledger</h1>
<p>Orders, invoices with approval, payments made exactly once per intent, double-entry books and published facts, over
HTTP. Every change is an event, with its author, its time and its authority.</p>
<p><a class="main" href="/console">Open the console</a></p>
<ul>${Object.values(LINKS)
  .map(({ href, says }) => `<li><a href="${href}">${href}</a>: ${says}</li>`)
  .join('')}</ul>
</html>
`

const readRoot = route({
  method: 'GET',
  path: '/',
  operationId: 'read_root',
  summary: 'Read what this service is, and where to continue',
  tag: 'Contract',
  scope: 'none',
  offers: ['application/json', 'text/html'],
  responses: { 200: { description: 'The links; a page for browsers.', schema: rootSchema } },
  handler: async ({ accept }) => {
    const headers = { 'Cache-Control': 'public, max-age=300', Vary: 'Accept' }
    if (accept !== 'text/html') return { status: 200, body, headers }
    return {
      status: 200,
      body: PAGE,
      contentType: 'text/html; charset=utf-8',
      headers: { ...headers, 'Content-Security-Policy': TEXT_PAGE_POLICY },
    }
  },
})

export const rootRoutes: readonly AnyRoute[] = [readRoot]
