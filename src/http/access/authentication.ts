import type { Request as Incoming } from 'express'
import type { ApiKeyVerifier } from '../../identity/apiKeys.ts'
import type { Principal } from '../../identity/principal.ts'
import type { KeyRefused, Refused } from '../../identity/refusals.ts'
import type { TokenVerifier } from '../../identity/tokens.ts'
import type { Authenticate } from './accessControl.ts'
import { Problem } from '../response/problemCatalogue.ts'

const BEARER = /^Bearer +([^\s]+)$/i

/** Told why a credential was refused, which its sender is not: nothing of the credential is in it. */
export type OnRefused = (refused: { readonly correlationId: unknown; readonly fault: string }) => void

export type Verifiers = {
  readonly tokens: TokenVerifier
  /** Undefined where the setting is missing without which there are no keys. */
  readonly apiKeys?: ApiKeyVerifier | undefined
  readonly onRefused?: OnRefused
}

export const noApiKeys = (): Problem =>
  new Problem('dependency_unavailable', {
    detail: 'There are no API keys here: the setting API_KEY_PEPPER is missing.',
  })

/** Who is calling, from the one credential of the request. Only the credential is believed. */
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

  const byToken = async (req: Incoming, authorization: string): Promise<Principal> => {
    const token = BEARER.exec(authorization)?.[1]
    if (token === undefined) throw new Problem('token_invalid', { detail: 'Authorization: Bearer, and one token.' })
    return admitted(req, await tokens.verify(token))
  }

  const byKey = async (req: Incoming, key: string): Promise<Principal> => {
    if (apiKeys === undefined) throw noApiKeys()
    return admitted(req, await apiKeys.verify(key))
  }

  return async req => {
    const { authorization } = req.headers
    const apiKey = req.headers['x-api-key']
    if (authorization !== undefined && apiKey !== undefined) throw new Problem('multiple_credentials')
    if (apiKey !== undefined) return byKey(req, String(apiKey))
    if (authorization === undefined) throw new Problem('unauthenticated')
    return byToken(req, authorization)
  }
}

/** For a process that serves nothing that needs a caller. */
export const nobody: Authenticate = () => Promise.reject(new Problem('unauthenticated'))
