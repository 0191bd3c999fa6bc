import type { Request as Incoming } from 'express'
import type { ApiKeyVerifier } from '../../identity/apiKeyVerifier.ts'
import type { Principal } from '../../identity/principal.ts'
import type { KeyFault, KeyRefused, Refused, TokenFault } from '../../identity/credentialRefusals.ts'
import type { TokenVerifier } from '../../identity/tokenVerifier.ts'
import type { Authenticate, BeforeWork } from './accessControl.ts'
import { Problem } from '../problems/problemCatalogue.ts'

/** Authentication of a request by its one credential: a bearer token or an API key. */

const BEARER = /^Bearer +([^\s]+)$/i

/** Receives the reason of a refusal for the log, and nothing of the credential. The caller learns less (`detailOf`). */
export type OnRefused = (refused: { readonly correlationId: unknown; readonly fault: string }) => void

const SIGNATURE =
  'The signature of the token does not verify with the keys that the issuer publishes. Get a new token from this issuer.'
const TIME = 'The token is not valid yet, or is valid for too long: compare its times (nbf, iat, exp) with the clock.'

/** The part of a token that was refused. A revoked token or API key gets none: it would help a thief. */
const PART_OF_FAULT: Readonly<Partial<Record<TokenFault | KeyFault, string>>> = {
  iss_mismatch:
    'The issuer of the token (iss) is not the one that this service trusts; /.well-known/oauth-protected-resource names it.',
  aud_mismatch: 'The audience of the token (aud) does not name this service. Request a token for this service.',
  signature_invalid: SIGNATURE,
  key_unknown: SIGNATURE,
  key_unfit: SIGNATURE,
  iat_in_future: TIME,
  not_yet_valid: TIME,
  lifetime_not_allowed: TIME,
  not_three_segments: 'The token is not a JSON Web Token. Send the access token as it was issued.',
  typ_not_access_token:
    'The token is not an access token (typ at+jwt). Send the access token, not an ID token or a refresh token.',
}

const detailOf = (fault: TokenFault | KeyFault): { readonly detail?: string } => {
  const part = PART_OF_FAULT[fault]
  return part === undefined ? {} : { detail: part }
}

export type Verifiers = {
  readonly tokens: TokenVerifier
  /** Undefined without the setting API_KEY_PEPPER: then there are no API keys. */
  readonly apiKeys?: ApiKeyVerifier | undefined
  readonly onRefused?: OnRefused
}

export const noApiKeys = (): Problem =>
  new Problem('dependency_unavailable', { detail: 'API keys are not enabled: the setting API_KEY_PEPPER is missing.' })

/** Resolves to the caller that the credential authenticates; nothing else of the request counts. */
export const createAuthentication = ({ tokens, apiKeys, onRefused = () => {} }: Verifiers): Authenticate => {
  const admitted = (req: Incoming, verified: Principal | Refused | KeyRefused): Principal => {
    if (!('refused' in verified)) return verified
    const { refused, fault } = verified
    onRefused({ correlationId: req.res?.locals['correlationId'], fault })
    if (refused !== 'keys_unavailable') throw new Problem(refused, detailOf(fault))
    throw new Problem('dependency_unavailable', {
      detail:
        'The keys needed to verify this credential are temporarily unavailable. Send the request again after the pause in Retry-After.',
    })
  }

  const byToken = async (req: Incoming, authorization: string, beforeWork?: BeforeWork): Promise<Principal> => {
    const token = BEARER.exec(authorization)?.[1]
    if (token === undefined)
      throw new Problem('token_invalid', {
        detail: 'The Authorization header must be Bearer, followed by one token.',
      })
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
