/** A percent-encoded colon is the colon: `/invoices/inv_…%3Aapprove` is the same resource path (RFC 3986 §6.2.2). */
export const normalizeUrl = (url: string): string => {
  const question = url.indexOf('?')
  const path = question < 0 ? url : url.slice(0, question)
  return path.includes('%') ? path.replaceAll(/%3a/gi, ':') + (question < 0 ? '' : url.slice(question)) : url
}
