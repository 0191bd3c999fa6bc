import { z } from 'zod'
import { mintDevToken } from '../../src/embedded/issuer/devToken.ts'
import { StartupError } from '../../src/startupError.ts'
import { fetchWhenAvailable } from '../../src/retryAfter.ts'
import { renewing } from '../demo/tokens.ts'
import { givenToken, TOKEN_SETTING, type TokenOptions } from './tokenOption.ts'
import { findConnections, howToStart } from './connections.ts'

/** Requests of the command line to the API. */

export type CallerOptions = TokenOptions & { readonly tenant?: string; readonly subject: string }
/** Resolves to the document of the response. Throws a StartupError with the problem's detail. */
export type ApiCaller = (
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  asked?: { readonly body?: object },
) => Promise<unknown>

const ANSWER_MAX_MS = 30_000

const problemSchema = z.object({
  title: z.string(),
  detail: z.string(),
  code: z.string(),
  correlation_id: z.string(),
  errors: z.array(z.object({ pointer: z.string(), detail: z.string() })).default([]),
})

/** The problem document of an error in one sentence. */
export const sentenceOf = (status: number, document: unknown): string => {
  const { data: problem } = problemSchema.safeParse(document)
  if (problem === undefined) return `The API answered ${status}, in words that are not its own.`
  const { title, detail, code, correlation_id, errors } = problem
  const sentences = [
    title,
    ...(detail === title ? [] : [detail]),
    ...errors.map(error => `${error.pointer}: ${error.detail}`),
  ]
  return `${sentences.join(' ')} (${code}, correlation id ${correlation_id})`
}

/**
 * The caller's own token, or short-lived ones of the embedded issuer, renewed as needed. Throws a StartupError if
 * neither is possible.
 */
export const tokensOf = async (options: CallerOptions, scopes: readonly string[]): Promise<() => Promise<string>> => {
  const { tenant, subject } = options
  const given = await givenToken(options)
  if (given !== undefined) return async () => given
  const { config, running } = await findConnections()
  const { dataDir, audience } = config
  if (config.issuer !== undefined)
    throw new StartupError(`OIDC_ISSUER is set: get a token from that issuer, and put it into ${TOKEN_SETTING}.`)
  if (tenant === undefined)
    throw new StartupError(`Say for whom: --tenant, or a token of your own in ${TOKEN_SETTING}.`)
  const issuer = running?.issuer ?? `http://localhost:${config.port}/oauth`
  const grant = { dataDir, issuer, audience, tenant, subject, scopes: [...new Set(scopes)], user: false }
  return renewing(() => mintDevToken(grant))
}

/** `scopes` are those of a token that is minted for the call. Throws a StartupError if no service is known. */
export const callerOf = async (options: CallerOptions, scopes: readonly string[]): Promise<ApiCaller> => {
  const { config, addresses } = await findConnections()
  const { api } = addresses
  if (api === null) throw new StartupError(howToStart(config.dataDir))
  const token = await tokensOf(options, scopes)
  return async (method, path, { body } = {}) => {
    const content = body === undefined ? {} : { 'content-type': 'application/json' }
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    const request = { method, headers: { authorization: `Bearer ${await token()}`, ...content }, ...sent }
    const response = await fetchWhenAvailable(`${api}${path}`, request, ANSWER_MAX_MS).catch((error: unknown) => {
      throw new StartupError(`The API at ${api} does not answer. See npm run ledger -- doctor.`, error)
    })
    const text = await response.text()
    const document: unknown = response.headers.get('content-type')?.includes('json') ? JSON.parse(text) : undefined
    if (!response.ok) throw new StartupError(sentenceOf(response.status, document))
    return document
  }
}
