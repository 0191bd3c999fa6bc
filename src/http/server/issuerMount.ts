import type { RequestHandler } from 'express'
import { Unavailable } from '../../ports.ts'
import { methodNotAllowed, Problem } from '../problems/problemCatalogue.ts'
import { setCommonHeaders } from '../response/respond.ts'

/** Mounts the embedded issuer below its path, with the headers and problem documents of the other endpoints. */

/**
 * A handler of requests below the issuer's path. It calls `next` with nothing for a path that it does not have, with an
 * Error whose `allow` names the methods for a method that the path does not have, and with any other Error for a
 * failure.
 */
export type IssuerHandler = (...args: Parameters<RequestHandler>) => void

const problemOf = (error: unknown): Problem => {
  if (error instanceof Unavailable) return new Problem('dependency_unavailable')
  const allow = error instanceof Error && 'allow' in error ? String(error.allow) : undefined
  return allow === undefined ? new Problem('internal_error') : methodNotAllowed(allow)
}

/** The issuer's own responses get the common headers; its errors become problem documents. */
export const mountIssuer =
  (handler: IssuerHandler): RequestHandler =>
  (req, res, next) => {
    setCommonHeaders(res)
    handler(req, res, (error?: unknown) => next(error === undefined ? undefined : problemOf(error)))
  }
