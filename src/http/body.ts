import type { IncomingMessage } from 'node:http'
import { parseJson } from './json.ts'
import { Problem } from './problem.ts'
import type { AnyRoute } from './route.ts'

const BODY_MAX_BYTES = 64 * 1024
/** Where the rest of the body may still come, nothing else does. */
const CLOSE = { Connection: 'close' }

// RFC 9110 §8.3.1: no white space around the equals sign, and a quoted value may have anything in it.
const TOKEN = "[-\\w!#$%&'*+.^`|~]+"
const VALUE = String.raw`${TOKEN}|"(?:[^"\\]|\\.)*"`
const MEDIA_TYPE = new RegExp(String.raw`^(${TOKEN}/${TOKEN})((?:[ \t]*;(?:[ \t]*${TOKEN}=(?:${VALUE}))?)*)[ \t]*$`)
const PARAMETER = new RegExp(String.raw`;[ \t]*(${TOKEN})=(${VALUE})`, 'g')

type MediaType = { readonly type: string; readonly charsets: readonly string[] }

/** In lower case. Undefined for what is no media type: somebody may have taken it for another one. */
const mediaTypeOf = (req: IncomingMessage): MediaType | undefined => {
  const [, type, parameters = ''] = MEDIA_TYPE.exec((req.headers['content-type'] ?? '').toLowerCase()) ?? []
  if (type === undefined) return undefined
  const named = [...parameters.matchAll(PARAMETER)].filter(([, name]) => name === 'charset')
  return { type, charsets: named.map(([, , value = '']) => value.replace(/^"(.*)"$/, '$1')) }
}

const typeOf = (declared: AnyRoute): string => declared.bodyType ?? 'application/json'

const unsupported = (declared: AnyRoute): Problem => {
  const type = typeOf(declared)
  const header = declared.method === 'PATCH' ? 'Accept-Patch' : 'Accept-Post'
  return new Problem('unsupported_media_type', { detail: `Send ${type} in UTF-8.`, headers: { [header]: type } })
}

const isSupported = (req: IncomingMessage, declared: AnyRoute): boolean => {
  const { type, charsets = [] } = mediaTypeOf(req) ?? {}
  const isUtf8 = charsets.length <= 1 && charsets.every(charset => charset === 'utf-8')
  return type === typeOf(declared) && isUtf8 && req.headers['content-encoding'] === undefined
}

/** The body's JSON. A declared body that is optional may be absent: then undefined. */
export const readBody = async (req: IncomingMessage, declared: AnyRoute, deadlineMs: number): Promise<unknown> => {
  const length = Number(req.headers['content-length'] ?? 0)
  const isEmpty = length === 0 && req.headers['transfer-encoding'] === undefined
  // Nobody would read it, nor notice that it is broken or half of it missing, and the operation would be carried out.
  if (!declared.body && !isEmpty)
    throw new Problem('bad_request_framing', { detail: 'This operation takes no body.', headers: CLOSE })
  if (!declared.body) return undefined
  if (isEmpty && declared.body?.safeParse(undefined).success) return undefined
  if (length > BODY_MAX_BYTES) throw new Problem('payload_too_large', { detail: `At most ${BODY_MAX_BYTES} bytes.` })
  if (!isSupported(req, declared)) throw unsupported(declared)
  return parseJson(await readBytes(req, deadlineMs))
}

const readBytes = (req: IncomingMessage, deadlineMs: number): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const late = setTimeout(() => end(new Problem('request_timeout', { headers: CLOSE })), deadlineMs)
    const end = (problem?: Problem): void => {
      clearTimeout(late)
      req.removeAllListeners('data')
      if (problem) reject(problem)
      else resolve(Buffer.concat(chunks, size))
    }
    req.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      size += chunk.length
      if (size > BODY_MAX_BYTES) end(new Problem('payload_too_large', { detail: `At most ${BODY_MAX_BYTES} bytes.` }))
    })
    req.on('end', () => end())
    req.on('close', () => req.complete || end(new Problem('bad_request_framing')))
    req.on('error', () => end(new Problem('bad_request_framing')))
  })
