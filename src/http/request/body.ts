import type { IncomingMessage, ServerResponse } from 'node:http'
import type { RequestTurn } from '../admission/requestTurn.ts'
import { parseJson } from './json.ts'
import { Problem } from '../problems/problemCatalogue.ts'
import type { AnyRoute } from '../route.ts'

export const BODY_MAX_BYTES = 64 * 1024
/** No other request can follow on a connection where the rest of a body may still arrive. */
const CLOSE = { Connection: 'close' }

// RFC 9110 §8.3.1: no white space around the equals sign; a quoted value may hold any character.
const TOKEN = "[-\\w!#$%&'*+.^`|~]+"
const VALUE = String.raw`${TOKEN}|"(?:[^"\\]|\\.)*"`
const MEDIA_TYPE = new RegExp(String.raw`^(${TOKEN}/${TOKEN})((?:[ \t]*;(?:[ \t]*${TOKEN}=(?:${VALUE}))?)*)[ \t]*$`)
const PARAMETER = new RegExp(String.raw`;[ \t]*(${TOKEN})=(${VALUE})`, 'g')

type MediaType = { readonly type: string; readonly charsets: readonly string[] }

/** The media type in lower case; undefined for a malformed one, which another implementation may parse differently. */
const mediaTypeOf = (req: IncomingMessage): MediaType | undefined => {
  const [, type, parameters = ''] = MEDIA_TYPE.exec((req.headers['content-type'] ?? '').toLowerCase()) ?? []
  if (type === undefined) return undefined
  const named = [...parameters.matchAll(PARAMETER)].filter(([, name]) => name === 'charset')
  return { type, charsets: named.map(([, , value = '']) => value.replace(/^"(.*)"$/, '$1')) }
}

const typeOf = (route: AnyRoute): string => route.bodyType ?? 'application/json'

/** RFC 9110 §15.5.16: the response names the supported media type, and the codings if a coding was the reason. */
const unsupported = ({ headers }: IncomingMessage, route: AnyRoute): Problem => {
  const type = typeOf(route)
  const accepted = { [route.method === 'PATCH' ? 'Accept-Patch' : 'Accept-Post']: type }
  if (headers['content-encoding'] === undefined)
    return new Problem('unsupported_media_type', {
      detail: `Send Content-Type: ${type}, with the body in UTF-8.`,
      headers: accepted,
    })
  return new Problem('unsupported_media_type', {
    detail: `Send ${type} without Content-Encoding.`,
    headers: { ...accepted, 'Accept-Encoding': 'identity' },
  })
}

const isSupported = (req: IncomingMessage, route: AnyRoute): boolean => {
  const { type, charsets = [] } = mediaTypeOf(req) ?? {}
  const isUtf8 = charsets.length <= 1 && charsets.every(charset => charset === 'utf-8')
  return type === typeOf(route) && isUtf8 && req.headers['content-encoding'] === undefined
}

/** The wait for a body: its deadline, and the turn of its request. */
export type BodyWait = {
  readonly deadlineMs: number
  readonly turn?: RequestTurn | undefined
  /** Sends 100 Continue to a client that waits for it before it sends the body. */
  readonly sendContinue?: () => void
}

/** Sends 100 Continue if the client expects it (RFC 9110 §10.1.1). */
export const sendContinueTo = ({ headers, httpVersion }: IncomingMessage, res: ServerResponse): void => {
  if (headers.expect !== undefined && httpVersion === '1.1') res.writeContinue()
}

/** Whether the framing headers announce content. */
const isAnnounced = ({ headers }: IncomingMessage): boolean =>
  Number(headers['content-length'] ?? 0) > 0 || headers['transfer-encoding'] !== undefined

/** The JSON of the body; undefined for an absent optional body. Throws Problem. */
export const readBody = async (req: IncomingMessage, route: AnyRoute, awaiting: BodyWait): Promise<unknown> => {
  const isEmpty = !isAnnounced(req)
  // An unread body could be broken or incomplete while the operation is executed.
  if (!route.body && !isEmpty)
    throw new Problem('bad_request_framing', {
      detail: 'This operation takes no body; send the request without one.',
      headers: CLOSE,
    })
  if (!route.body) return undefined
  if (isEmpty && route.body?.safeParse(undefined).success) return undefined
  if (lengthOf(req) > BODY_MAX_BYTES) throw tooLarge(BODY_MAX_BYTES)
  if (!isSupported(req, route)) throw unsupported(req, route)
  return parseJson(isEmpty ? Buffer.alloc(0) : await readBytes(req, awaiting))
}

/** The length of the body that will be read; 0 while it is unknown. */
export const announcedBytesOf = (req: IncomingMessage): number => Math.min(lengthOf(req) || 0, BODY_MAX_BYTES)

const lengthOf = ({ headers }: IncomingMessage): number => Number(headers['content-length'] ?? 0)

const tooLarge = (maxBytes: number): Problem =>
  new Problem('payload_too_large', { detail: `A body may have at most ${maxBytes} bytes.` })

/**
 * Waits for a body without a turn, so that heads without bodies block nobody. `onEnd` is called once, with a Problem if
 * the body does not arrive. The returned function ends the wait.
 */
const awaitBody = (
  { deadlineMs, turn, sendContinue }: BodyWait,
  bytes: number,
  onEnd: (problem?: Problem) => void,
): ((problem?: Problem) => void) => {
  let hasEnded = false
  const end = (problem?: Problem): void => {
    if (hasEnded) return
    hasEnded = true
    clearTimeout(late)
    onEnd(problem)
  }
  const giveUp = (): void =>
    end(
      new Problem('request_timeout', {
        detail: 'Too many requests are waiting for their bodies. Send the body together with the headers.',
        headers: CLOSE,
      }),
    )
  const late = setTimeout(() => end(new Problem('request_timeout', { headers: CLOSE })), deadlineMs)
  turn?.awaitBody(bytes, giveUp)
  sendContinue?.()
  return end
}

/** Most bodies arrive with their heads: such a request keeps its turn, unless its size was not announced. */
const readBytes = async (req: IncomingMessage, awaiting: BodyWait): Promise<Buffer> => {
  const { turn, ...rest } = awaiting
  if (req.complete && lengthOf(req) > 0) return collectBytes(req, rest)
  const bytes = await collectBytes(req, awaiting)
  turn?.resize(bytes.length)
  await turn?.enter()
  return bytes
}

const collectBytes = (req: IncomingMessage, awaiting: BodyWait): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const end = awaitBody(awaiting, lengthOf(req) || BODY_MAX_BYTES, problem => {
      req.removeAllListeners('data')
      if (problem) reject(problem)
      else resolve(Buffer.concat(chunks, size))
    })
    req.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      size += chunk.length
      if (size > BODY_MAX_BYTES) end(tooLarge(BODY_MAX_BYTES))
    })
    req.on('end', () => end())
    req.on('close', () => req.complete || end(new Problem('bad_request_framing')))
    req.on('error', () => end(new Problem('bad_request_framing')))
  })

/** Resolves when the whole body is in the stream's buffer, for a handler that reads it itself. Throws Problem. */
export const bodyArrived = async (req: IncomingMessage, maxBytes: number, awaiting: BodyWait): Promise<void> => {
  if (!isAnnounced(req)) return
  if (lengthOf(req) > maxBytes) throw tooLarge(maxBytes)
  await arrival(req, maxBytes, awaiting)
  await awaiting.turn?.enter()
}

const arrival = (req: IncomingMessage, maxBytes: number, awaiting: BodyWait): Promise<void> =>
  new Promise((resolve, reject) => {
    const checkSize = (): void => {
      if (req.readableLength > maxBytes) end(tooLarge(maxBytes))
      else if (req.complete) end()
    }
    const onDisconnect = (): void => end(new Problem('bad_request_framing'))
    const end = awaitBody(awaiting, lengthOf(req) || maxBytes, problem => {
      req.off('readable', checkSize).off('close', onDisconnect).off('error', onDisconnect)
      // The stream drops its 'readable' mode in the next turn; its reader must begin after that.
      setImmediate(() => (problem ? reject(problem) : resolve()))
    })
    req.on('readable', checkSize).on('close', onDisconnect).on('error', onDisconnect)
  })
