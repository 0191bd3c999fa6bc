import { createHash } from 'node:crypto'
import type { Request as Incoming, RequestHandler, Response as Outgoing } from 'express'
import { Problem } from '../problems/problemCatalogue.ts'
import { codingOf } from '../response/contentCoding.ts'
import { consolePagePolicy } from '../response/contentSecurityPolicy.ts'
import { setCommonHeaders } from '../response/respond.ts'
import { type ConsoleFiles, readConsoleFiles, type ServedFile, servedFile } from './consoleFiles.ts'

/** /console: every path below it that is no file is the same page, whose script shows what the path names. */

/** What the page has to know of the installation. All of it is public. */
export type ConsoleSettings = {
  /** The issuer that it logs in at, whose metadata it reads by discovery. */
  readonly issuer: string
  /** Empty where an outside issuer has no client for the console: the page says so. */
  readonly clientId: string
  /** The scopes that it asks for, separated by spaces. */
  readonly scope: string
  /** The name of the installation that every page shows, such as `production`. */
  readonly environment: string
  /** Its pages are marked then. */
  readonly isProduction: boolean
}

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '"': '&quot;' }
const escaped = (text: string): string => text.replaceAll(/[&<"]/g, character => ESCAPES[character] ?? '')

const pageOf = (settings: ConsoleSettings, { importMap, preloaded, main, styles }: ConsoleFiles): string =>
  `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Payment ledger console</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<meta name="ledger-console" content="${escaped(JSON.stringify(settings))}"><link rel="icon" href="data:,">
${styles.map(path => `<link rel="stylesheet" href="${path}">`).join('\n')}
<script type="importmap">${importMap}</script>
${preloaded.map(path => `<link rel="modulepreload" href="${path}">`).join('\n')}
<script type="module" src="${main}"></script></head>
<body><noscript>The console needs JavaScript. The same data are at the API: see <a href="/docs">/docs</a>.</noscript></body></html>
`

type Served = { readonly files: ConsoleFiles['files']; readonly page: ServedFile; readonly policy: string }

const build = async (settings: ConsoleSettings): Promise<Served> => {
  const read = await readConsoleFiles()
  const hash = createHash('sha256').update(read.importMap).digest('base64')
  const policy = consolePagePolicy({ importMapHash: hash, issuer: new URL(settings.issuer).origin })
  return { files: read.files, page: await servedFile('text/html', pageOf(settings, read)), policy }
}

const METHODS = ['GET', 'HEAD']

const send = (req: Incoming, res: Outgoing, file: ServedFile, headers: Readonly<Record<string, string>>): void => {
  const etag = `"${file.etag}"`
  const common = { ...headers, ETag: etag, Vary: 'Accept-Encoding' }
  if (req.headers['if-none-match'] === etag) return void res.writeHead(304, common).end()
  const isCoded = codingOf(req.headers['accept-encoding']) === 'br'
  const bytes = isCoded ? file.brotli : file.bytes
  res.writeHead(200, {
    ...common,
    ...(isCoded ? { 'Content-Encoding': 'br' } : {}),
    'Content-Type': file.type,
    'Content-Length': bytes.length,
  })
  res.end(req.method === 'HEAD' ? undefined : bytes)
}

const FILE = /^\/([\w-]{16}\/.+)$/

/** Serves the page and its files, which are read at the first request. */
export const mountConsole = (settings: ConsoleSettings): RequestHandler => {
  let built: Promise<Served> | undefined
  return async (req, res, next) => {
    setCommonHeaders(res)
    if (!METHODS.includes(req.method))
      return next(new Problem('method_not_allowed', { headers: { Allow: METHODS.join(', ') } }))
    const { files, page, policy } = await (built ??= build(settings))
    const [, name] = FILE.exec(req.path) ?? []
    if (name === undefined)
      return send(req, res, page, {
        'Cache-Control': 'no-cache',
        'Content-Security-Policy': policy,
        'Referrer-Policy': 'no-referrer',
      })
    const file = files.get(name)
    if (file === undefined) return next(new Problem('route_not_found'))
    send(req, res, file, { 'Cache-Control': 'public, max-age=31536000, immutable' })
  }
}
