import { randomUUID } from 'node:crypto'
import { Option } from 'commander'
import { z } from 'zod'
import { type DevGrant, mintDevToken } from '../../src/embedded/issuer/devToken.ts'
import { hasSigningKey } from '../../src/embedded/issuer/signingKey.ts'
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
  asked?: { readonly body?: object; readonly idempotencyKey?: string },
) => Promise<unknown>

export type KeyedOptions = { readonly idempotencyKey?: string }

/** The option of commands that would create another resource when they are repeated after a lost answer. */
export const keyOption = new Option(
  '--idempotency-key <key>',
  'repeat a command whose answer was lost, with the key that its message names: it takes effect once',
)
/** A creating request: with the given key, or a new one. */
export const keyed = ({ idempotencyKey = randomUUID() }: KeyedOptions, body: object) => ({ body, idempotencyKey })

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
  if (tenant === undefined)
    throw new StartupError(`Name the tenant with --tenant, or put a token of your own into ${TOKEN_SETTING}.`)
  return renewing(await embeddedIssuerFor({ tenant, subject, scopes: [...new Set(scopes)], user: false }))
}

/** Mints tokens of the embedded issuer. Throws a StartupError where no service would accept them. */
export const embeddedIssuerFor = async (grant: DevGrant): Promise<() => Promise<string>> => {
  const { config, running } = await findConnections()
  const { dataDir, audience } = config
  if (config.issuer !== undefined)
    throw new StartupError(`OIDC_ISSUER is set: get a token from that issuer, and put it into ${TOKEN_SETTING}.`)
  if (!(await hasSigningKey(dataDir)))
    throw new StartupError(
      `No embedded issuer has run on ${dataDir}. Start the service, or name its directory by LEDGER_DATA_DIR.`,
    )
  const issuer = running?.issuer ?? `http://localhost:${config.port}/oauth`
  return () => mintDevToken({ dataDir, issuer, audience, ...grant })
}

/** `scopes` are those of a token that is minted for the call. Throws a StartupError if no service is known. */
export const callerOf = async (options: CallerOptions, scopes: readonly string[]): Promise<ApiCaller> => {
  const { config, addresses } = await findConnections()
  const { api } = addresses
  if (api === null) throw new StartupError(howToStart(config.dataDir))
  const token = await tokensOf(options, scopes)
  return async (method, path, { body, idempotencyKey } = {}) => {
    const headers = {
      authorization: `Bearer ${await token()}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
    }
    const request = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }
    const { response, text } = await fetchWhenAvailable(`${api}${path}`, request, ANSWER_MAX_MS)
      .then(async response => ({ response, text: await response.text() }))
      .catch((error: unknown) => {
        const sentence = `The API at ${api} does not answer. See npm run ledger -- doctor.`
        throw new StartupError(sentence + howToRepeat(idempotencyKey), error)
      })
    const document: unknown = response.headers.get('content-type')?.includes('json') ? JSON.parse(text) : undefined
    const isUnknown = response.status >= INTERNAL_ERROR
    if (!response.ok)
      throw new StartupError(sentenceOf(response.status, document) + (isUnknown ? howToRepeat(idempotencyKey) : ''))
    return document
  }
}

const INTERNAL_ERROR = 500

/** The sentence of a command that may have taken effect. */
const howToRepeat = (idempotencyKey: string | undefined): string =>
  idempotencyKey === undefined
    ? ''
    : ` The command may have taken effect: repeat it with --idempotency-key ${idempotencyKey}, and it does so once.`
