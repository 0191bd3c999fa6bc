import { originFormOf } from './framing.ts'

/**
 * The path and the query alone. A percent-encoded colon is the colon: `/invoices/inv_…%3Aapprove` is the same resource
 * path (RFC 3986 §6.2.2).
 */
export const normalizeUrl = (target: string, method: string): string => {
  const url = originFormOf(target, method) ?? target
  const question = url.indexOf('?')
  const path = question < 0 ? url : url.slice(0, question)
  return path.includes('%') ? path.replaceAll(/%3a/gi, ':') + (question < 0 ? '' : url.slice(question)) : url
}
