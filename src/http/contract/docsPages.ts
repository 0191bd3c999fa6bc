import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { SCOPES } from '../../identity/principal.ts'
import { DOCS_PAGE_POLICY } from '../response/contentSecurityPolicy.ts'
import { type AnyRoute, route } from '../route.ts'
import { OLDEST_VERSION, type Version, VERSIONS } from '../versions/index.ts'

/** /docs: the contract by Swagger UI. All files come from here; no other origin and no inline script is permitted. */

/** The client of the embedded issuer that the Authorize dialog begins with (embedded/issuer/clients.ts). */
const CLIENT_ID = 'docs-acme'

const own = (name: string): string => new URL(`docs/${name}`, import.meta.url).pathname
const vendor = (name: string): string =>
  join(dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json')), name)

/** The length of a parameter of an authorization response. */
const RESPONSE_CHARS_MAX = 2_048

const REDIRECT_PAGE =
  '<!doctype html><html lang="en"><title>Login</title><script src="oauth2-redirect.js"></script></html>\n'

type Asset = { readonly type: 'text/javascript' | 'text/css'; readonly read: () => Promise<string> }
const fileOf = (type: Asset['type'], path: () => string): Asset => ({ type, read: () => readFile(path(), 'utf8') })

const ASSETS: Readonly<Record<string, Asset>> = {
  'docs.js': fileOf('text/javascript', () => own('docs.js')),
  'docs.css': fileOf('text/css', () => own('docs.css')),
  'oauth2-redirect.js': fileOf('text/javascript', () => own('oauth2-redirect.js')),
  'swagger-ui-bundle.js': fileOf('text/javascript', () => vendor('swagger-ui-bundle.js')),
  'swagger-ui.css': fileOf('text/css', () => vendor('swagger-ui.css')),
}

/** The window for the login keeps its opener, so no opener policy is sent. */
const HEADERS = { 'Content-Security-Policy': DOCS_PAGE_POLICY, 'Referrer-Policy': 'no-referrer' }

/** An outside issuer has clients of its own, whose id the reader types. */
const pageOf = (version: Version, isEmbedded: boolean): string => `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Payment ledger: API ${version}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/swagger-ui.css"><link rel="stylesheet" href="/docs/docs.css">
<nav aria-label="Versions">API version: ${VERSIONS.map(other =>
  other === version ? `<strong>${other}</strong> ` : `<a href="/docs?version=${other}">${other}</a>`,
).join(' ')} <a href="/docs/versions/${VERSIONS.at(-1)}">Changes</a> <a href="/asyncapi.json">Facts</a></nav>
<main id="docs" data-version="${version}" data-client-id="${isEmbedded ? CLIENT_ID : ''}" data-scopes="${SCOPES[0]}"></main>
<script src="/docs/swagger-ui-bundle.js"></script><script src="/docs/docs.js"></script>
</html>
`

const common = { method: 'GET', tag: 'Contract', scope: 'none' } as const

/** Without API-Version a request has the oldest version that is served; an older one is retired. */
const shownVersion = (requested: Version, served: Version): Version =>
  VERSIONS.indexOf(requested) < VERSIONS.indexOf(served) ? served : requested

const readDocs = route({
  ...common,
  path: '/docs',
  operationId: 'read_docs',
  summary: 'Read and try this contract in a browser',
  offers: ['text/html'],
  query: z.object({
    version: z.enum(VERSIONS).default(OLDEST_VERSION).meta({ description: 'The version to show.' }),
  }),
  responses: { 200: { description: 'A page.', schema: z.string(), contentType: 'text/html' } },
  handler: async ({ query: { version }, apiVersion, issuer }) => ({
    status: 200,
    body: pageOf(shownVersion(version, apiVersion), issuer.metadata !== undefined),
    contentType: 'text/html; charset=utf-8',
    headers: { ...HEADERS, 'Cache-Control': 'public, max-age=300', Vary: 'API-Version' },
  }),
})

const responseParameter = (description: string) => z.string().max(RESPONSE_CHARS_MAX).optional().meta({ description })

const readLogin = route({
  ...common,
  path: '/docs/oauth2-redirect.html',
  operationId: 'read_docs_login',
  summary: 'Return to the page /docs from a login',
  offers: ['text/html'],
  query: z.object({
    code: responseParameter('The authorization code.'),
    state: responseParameter('The state of the authorization request.'),
    iss: responseParameter('The issuer (RFC 9207).'),
    error: responseParameter('The error code of a refusal (RFC 6749).'),
    error_description: responseParameter('The reason of a refusal.'),
  }),
  responses: { 200: { description: 'A page.', schema: z.string(), contentType: 'text/html' } },
  // The script reads the parameters.
  handler: async () => ({
    status: 200,
    body: REDIRECT_PAGE,
    contentType: 'text/html; charset=utf-8',
    headers: HEADERS,
  }),
})

const types = ['text/javascript', 'text/css']
const read = new Map<string, Promise<string>>()

/** The file, which is read once: it changes with the build alone. */
const textOf = (name: string, asset: Asset): Promise<string> => {
  const text = read.get(name) ?? asset.read()
  read.set(name, text)
  text.catch(() => read.delete(name))
  return text
}

const readDocsFile = route({
  ...common,
  path: '/docs/{file}',
  operationId: 'read_docs_file',
  summary: 'Read a file of the page /docs',
  // The file determines the type, so any that the caller accepts will do.
  offers: types,
  params: z.object({
    file: z
      .string()
      .refine(name => Object.hasOwn(ASSETS, name))
      .meta({ description: 'The name of the file.', examples: ['docs.js'] }),
  }),
  responses: { 200: { description: 'The file.', schema: z.string(), contentType: types } },
  handler: async ({ params: { file } }) => {
    const asset = ASSETS[file]
    if (asset === undefined) throw new Error(`There is no file ${file}.`)
    return {
      status: 200,
      body: await textOf(file, asset),
      contentType: `${asset.type}; charset=utf-8`,
      headers: { ...HEADERS, 'Cache-Control': 'public, max-age=3600' },
    }
  },
})

export const docsRoutes: readonly AnyRoute[] = [readDocs, readLogin, readDocsFile]
