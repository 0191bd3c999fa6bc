import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { z } from 'zod'
import { createIssuer } from '../../../src/embedded/issuer/issuer.ts'

/**
 * An OpenID Connect issuer for docker-compose.yml where there is no other: the embedded one as a server of its own, over
 * TLS, since production accepts no issuer without it.
 */

const settings = z.object({
  /** The URL of the issuer, with a path. */
  OIDC_ISSUER: z.url(),
  OIDC_AUDIENCE: z.string(),
  /** Holds the keys and clients of the issuer, and its certificate. */
  LEDGER_DATA_DIR: z.string(),
})

const { OIDC_ISSUER: issuer, OIDC_AUDIENCE: audience, LEDGER_DATA_DIR: dataDir } = settings.parse(process.env)
const report = (error: unknown): void => void process.stderr.write(`${String(error)}\n`)
const { handler, metadata } = await createIssuer({ issuer, audience, dataDir, onError: report })
const { pathname, port } = new URL(issuer)

const [cert, key] = await Promise.all(['tls.crt', 'tls.key'].map(name => readFile(join(dataDir, name))))
const server = createServer({ cert, key }, (request, response) => {
  const { url = '' } = request
  if (url === `/.well-known/oauth-authorization-server${pathname}`)
    return void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(metadata))
  // As Express has it: the provider finds its mount path by the difference.
  const mounted = Object.assign(request, { originalUrl: url, url: url.slice(pathname.length) })
  handler(mounted, response, () => void response.writeHead(404).end())
})
server.listen(Number(port))
await once(server, 'listening')
process.stdout.write('ready\n')
process.once('SIGTERM', () => process.exit())
