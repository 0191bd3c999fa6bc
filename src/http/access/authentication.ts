import type { Request as Incoming } from 'express'
import type { ApiKeyVerifier } from '../../identity/apiKeyVerifier.ts'
import type { Principal } from '../../identity/principal.ts'
import type { KeyRefused, Refused } from '../../identity/credentialRefusals.ts'
import type { TokenVerifier } from '../../identity/tokenVerifier.ts'
import type { Authenticate, BeforeWork } from './accessControl.ts'
import { Problem } from '../problems/problemCatalogue.ts'

/** Authentication of a request by its one credential: a bearer token or an API key. */

const BEARER = /^Bearer +([^\s]+)$/i

/**
 * Receives the reason of a refused credential for the log. The caller does not learn it, and it holds nothing of the
 * credential.
 */
export type OnRefused = (refused: { readonly correlationId: unknown; readonly fault: string }) => void

export type Verifiers = {
  readonly tokens: TokenVerifier
  /** Undefined without the setting API_KEY_PEPPER: then there are no API keys. */
  readonly apiKeys?: ApiKeyVerifier | undefined
  readonly onRefused?: OnRefused
}

export const noApiKeys = (): Problem =>
  new Problem('dependency_unavailable', {
    detail: 'There are no API keys here: the setting API_KEY_PEPPER is missing.',
  })

/** Resolves to the caller that the credential authenticates; nothing else of the request counts. */
export const createAuthentication = ({ tokens, apiKeys, onRefused = () => {} }: Verifiers): Authenticate => {
  const admitted = (req: Incoming, verified: Principal | Refused | KeyRefused): Principal => {
    if (!('refused' in verified)) return verified
    const { refused, fault } = verified
    onRefused({ correlationId: req.res?.locals['correlationId'], fault })
    if (refused !== 'keys_unavailable') throw new Problem(refused)
    throw new Problem('dependency_unavailable', {
      detail: 'What the credential is checked with cannot be had right now.',
    })
  }

  const byToken = async (req: Incoming, authorization: string, beforeWork?: BeforeWork): Promise<Principal> => {
    const token = BEARER.exec(authorization)?.[1]
    if (token === undefined) throw new Problem('token_invalid', { detail: 'Authorization: Bearer, and one token.' })
    return admitted(req, await tokens.verify(token, beforeWork))
  }

  const byKey = async (req: Incoming, key: string, beforeWork?: BeforeWork): Promise<Principal> => {
    if (apiKeys === undefined) throw noApiKeys()
    return admitted(req, await apiKeys.verify(key, beforeWork))
  }

  return async (req, beforeWork) => {
    const { authorization } = req.headers
    const apiKey = req.headers['x-api-key']
    if (authorization !== undefined && apiKey !== undefined) throw new Problem('multiple_credentials')
    if (apiKey !== undefined) return byKey(req, String(apiKey), beforeWork)
    if (authorization === undefined) throw new Problem('unauthenticated')
    return byToken(req, authorization, beforeWork)
  }
}

/** Refuses every credential, for processes that serve only public endpoints. */
export const refuseEveryone: Authenticate = () => Promise.reject(new Problem('unauthenticated'))
