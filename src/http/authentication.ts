import type { TokenVerifier } from '../identity/tokens.ts'
import type { Authenticate } from './boundary.ts'
import { Problem } from './problem.ts'

const BEARER = /^Bearer +([^\s]+)$/i

/** Who is calling, from the one credential of the request. Only the credential is believed. */
export const bearerAuthentication =
  (verifier: TokenVerifier): Authenticate =>
  async ({ headers }) => {
    const { authorization } = headers
    const apiKey = headers['x-api-key']
    if (authorization !== undefined && apiKey !== undefined) throw new Problem('multiple_credentials')
    if (apiKey !== undefined) throw new Problem('api_key_invalid')
    if (authorization === undefined) throw new Problem('unauthenticated')
    const token = BEARER.exec(authorization)?.[1]
    if (token === undefined) throw new Problem('token_invalid', { detail: 'Authorization: Bearer, and one token.' })
    const verified = await verifier.verify(token)
    if (!('refused' in verified)) return verified
    if (verified.refused !== 'keys_unavailable') throw new Problem(verified.refused)
    throw new Problem('dependency_unavailable', { detail: 'The keys of the issuer cannot be had right now.' })
  }

/** For a process that serves nothing that needs a caller. */
export const nobody: Authenticate = () => Promise.reject(new Problem('unauthenticated'))
