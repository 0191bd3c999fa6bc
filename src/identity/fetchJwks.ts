import { z } from 'zod'
import { fetchWhenAvailable } from '../lib/retryAfter.ts'

/** The key set of an issuer, found by its metadata (RFC 8414, OpenID Connect Discovery); keySetCache.ts says when. */

const FETCH_TIMEOUT_MS = 3000
const MAX_DOCUMENT_BYTES = 262_144

export type FetchJwks = () => Promise<unknown>

const metadataSchema = z.object({ issuer: z.string(), jwks_uri: z.url({ protocol: /^https?$/ }) })

/** Reads at most `MAX_DOCUMENT_BYTES`, so a response cannot exhaust memory. */
const readBounded = async (response: Response): Promise<string> => {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength
    if (bytes > MAX_DOCUMENT_BYTES) throw new Error(`The issuer's document is larger than ${MAX_DOCUMENT_BYTES} bytes.`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** A redirect is an error: keys are read from the configured host only. */
const fetchJson = async (url: string): Promise<unknown> => {
  const headers = { accept: 'application/json, application/jwk-set+json' }
  const response = await fetchWhenAvailable(url, { headers, redirect: 'error' }, FETCH_TIMEOUT_MS)
  const text = await readBounded(response)
  if (!response.ok) throw new Error(`The issuer answered ${response.status}.`)
  return JSON.parse(text)
}

/** RFC 8414, section 3, puts the well-known part before the issuer's path; OpenID Connect Discovery after it. */
const metadataUrls = (issuer: string): string[] => {
  const url = new URL(issuer)
  const path = url.pathname.replace(/\/$/, '')
  return [
    `${url.origin}/.well-known/oauth-authorization-server${path}`,
    `${url.origin}${path}/.well-known/openid-configuration`,
  ]
}

/** The metadata must name this issuer; otherwise another tenant of the same host could substitute its own keys. */
const keysUrlFrom = (document: unknown, issuer: string): string => {
  const metadata = metadataSchema.parse(document)
  if (metadata.issuer !== issuer) throw new Error('The metadata is of another issuer.')
  const downgraded = issuer.startsWith('https:') && !metadata.jwks_uri.startsWith('https:')
  if (downgraded) throw new Error('The issuer is on https, but its keys are not.')
  return metadata.jwks_uri
}

const discover = async (issuer: string): Promise<string> => {
  let failure: unknown
  for (const url of metadataUrls(issuer)) {
    try {
      return keysUrlFrom(await fetchJson(url), issuer)
    } catch (error) {
      failure = error
    }
  }
  throw new Error(`No metadata of the issuer could be read.`, { cause: failure })
}

/** The address of the metadata is kept until it fails once. A 503 with Retry-After is retried. Rejects after 3 s for each. */
export const fetchJwksFrom = (issuer: string): FetchJwks => {
  let keysUrl: string | undefined
  return async () => {
    keysUrl ??= await discover(issuer)
    try {
      return await fetchJson(keysUrl)
    } catch (error) {
      keysUrl = undefined
      throw error
    }
  }
}
