import { Metadata, status } from '@grpc/grpc-js'
import { type IncomingHttpHeaders, constants } from 'node:http2'

const OK = String(status.OK)
const HTTP_OK = 200
const CONTENT_TYPE = 'application/grpc'

/** The shape of the gRPC library's errors, which the official client translates. */
export type CallError = Error & { readonly code: status; readonly details: string; readonly metadata: Metadata }

export const callError = (code: status, details: string, metadata = new Metadata()): CallError =>
  Object.assign(new Error(`${code} ${status[code]}: ${details}`), { code, details, metadata })

/** A malformed encoding must not discard the status, so the text is then returned as it is. */
const percentDecoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The status in the trailers, or in a response that is only headers; undefined if there is none. */
export const statusIn = (headers: IncomingHttpHeaders): CallError | 'ok' | undefined => {
  const code = headers['grpc-status']
  if (code === undefined) return undefined
  if (code === OK) return 'ok'
  const details = percentDecoded(String(headers['grpc-message'] ?? ''))
  return callError(Number(code), details, Metadata.fromHttp2Headers(headers))
}

/** From "HTTP to gRPC Status Code Mapping". Other codes are UNKNOWN. */
const STATUS_OF_HTTP: Readonly<Record<number, status>> = {
  400: status.INTERNAL,
  401: status.UNAUTHENTICATED,
  403: status.PERMISSION_DENIED,
  404: status.UNIMPLEMENTED,
  429: status.UNAVAILABLE,
  502: status.UNAVAILABLE,
  503: status.UNAVAILABLE,
  504: status.UNAVAILABLE,
}

/** The error in the headers of a response that is not one of gRPC, such as that of a proxy; undefined for others. */
export const foreignResponse = (headers: IncomingHttpHeaders): CallError | undefined => {
  const http = Number(headers[':status'])
  if (http !== HTTP_OK) return callError(STATUS_OF_HTTP[http] ?? status.UNKNOWN, `Received HTTP status code ${http}`)
  const type = headers['content-type'] ?? ''
  return type.startsWith(CONTENT_TYPE) ? undefined : callError(status.INTERNAL, `The content type is ${type}.`)
}

/** The error of a call that the store reset with this code of HTTP/2, as the gRPC library names it. */
export const resetError = (rstCode: number): CallError => {
  switch (rstCode) {
    case constants.NGHTTP2_REFUSED_STREAM:
      return callError(status.UNAVAILABLE, 'Stream refused by server')
    case constants.NGHTTP2_CANCEL:
      return callError(status.CANCELLED, 'Call cancelled')
    case constants.NGHTTP2_ENHANCE_YOUR_CALM:
      return callError(status.RESOURCE_EXHAUSTED, 'Bandwidth exhausted or memory limit exceeded')
    case constants.NGHTTP2_INADEQUATE_SECURITY:
      return callError(status.PERMISSION_DENIED, 'Protocol not secure enough')
    case constants.NGHTTP2_NO_ERROR:
      return callError(status.UNAVAILABLE, 'The call ended without a status.')
    default:
      return callError(status.INTERNAL, `Received RST_STREAM with code ${rstCode}`)
  }
}
