import type { RequestHandler } from 'express'
import { Unavailable } from '../../ports.ts'
import { methodNotAllowed, Problem } from '../problems/problemCatalogue.ts'
import { setCommonHeaders } from '../response/respond.ts'

/** Calls `next` with nothing for an unknown path, with an Error for a failure; its `allow`: permitted methods. */
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
