import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Holding } from '../server/capacity.ts'
import { parseJson } from './json.ts'
import { Problem } from '../response/problemCatalogue.ts'
import type { AnyRoute } from '../route.ts'

const BODY_MAX_BYTES = 64 * 1024
/** Where the rest of the body may still come, no other request can follow it. */
const CLOSE = { Connection: 'close' }

// RFC 9110 §8.3.1: no white space around the equals sign, and a quoted value may have anything in it.
const TOKEN = "[-\\w!#$%&'*+.^`|~]+"
const VALUE = String.raw`${TOKEN}|"(?:[^"\\]|\\.)*"`
const MEDIA_TYPE = new RegExp(String.raw`^(${TOKEN}/${TOKEN})((?:[ \t]*;(?:[ \t]*${TOKEN}=(?:${VALUE}))?)*)[ \t]*$`)
const PARAMETER = new RegExp(String.raw`;[ \t]*(${TOKEN})=(${VALUE})`, 'g')

type MediaType = { readonly type: string; readonly charsets: readonly string[] }

/** In lower case. Undefined for what is no media type: another reader may have taken it for another one. */
const mediaTypeOf = (req: IncomingMessage): MediaType | undefined => {
  const [, type, parameters = ''] = MEDIA_TYPE.exec((req.headers['content-type'] ?? '').toLowerCase()) ?? []
  if (type === undefined) return undefined
  const named = [...parameters.matchAll(PARAMETER)].filter(([, name]) => name === 'charset')
  return { type, charsets: named.map(([, , value = '']) => value.replace(/^"(.*)"$/, '$1')) }
}

const typeOf = (declared: AnyRoute): string => declared.bodyType ?? 'application/json'

/** RFC 9110 §15.5.16: the answer names the media type that is taken, and the codings where a coding was the reason. */
const unsupported = ({ headers }: IncomingMessage, declared: AnyRoute): Problem => {
  const type = typeOf(declared)
  const accepted = { [declared.method === 'PATCH' ? 'Accept-Patch' : 'Accept-Post']: type }
  if (headers['content-encoding'] === undefined)
    return new Problem('unsupported_media_type', { detail: `Send ${type} in UTF-8.`, headers: accepted })
  return new Problem('unsupported_media_type', {
    detail: `Send ${type} without a content coding.`,
    headers: { ...accepted, 'Accept-Encoding': 'identity' },
  })
}

const isSupported = (req: IncomingMessage, declared: AnyRoute): boolean => {
  const { type, charsets = [] } = mediaTypeOf(req) ?? {}
  const isUtf8 = charsets.length <= 1 && charsets.every(charset => charset === 'utf-8')
  return type === typeOf(declared) && isUtf8 && req.headers['content-encoding'] === undefined
}

/** How a body is awaited: for whom, for how long, and where its request holds its share of the capacity. */
export type Awaiting = {
  readonly caller: string
  readonly deadlineMs: number
  readonly holding?: Holding | undefined
  /** Tells a client that waits for it (Expect: 100-continue) to send the body. */
  readonly goOn?: () => void
}

/** Asks a client for the body that it holds back until it is told to go on (RFC 9110 §10.1.1). */
export const continueTo = ({ headers, httpVersion }: IncomingMessage, res: ServerResponse): void => {
  if (headers.expect !== undefined && httpVersion === '1.1') res.writeContinue()
}

/** Whether content follows the head, as the framing says. */
const isAnnounced = ({ headers }: IncomingMessage): boolean =>
  Number(headers['content-length'] ?? 0) > 0 || headers['transfer-encoding'] !== undefined

/** The body's JSON. A declared body that is optional may be absent: then undefined. */
export const readBody = async (req: IncomingMessage, declared: AnyRoute, awaiting: Awaiting): Promise<unknown> => {
  const isEmpty = !isAnnounced(req)
  // The body would be left unread, even if it is broken or half of it is missing, and the operation would be carried out.
  if (!declared.body && !isEmpty)
    throw new Problem('bad_request_framing', { detail: 'This operation takes no body.', headers: CLOSE })
  if (!declared.body) return undefined
  if (isEmpty && declared.body?.safeParse(undefined).success) return undefined
  if (lengthOf(req) > BODY_MAX_BYTES) throw tooLarge(BODY_MAX_BYTES)
  if (!isSupported(req, declared)) throw unsupported(req, declared)
  return parseJson(isEmpty ? Buffer.alloc(0) : await readBytes(req, awaiting))
}

const lengthOf = ({ headers }: IncomingMessage): number => Number(headers['content-length'] ?? 0)

const tooLarge = (maxBytes: number): Problem =>
  new Problem('payload_too_large', { detail: `At most ${maxBytes} bytes.` })

/**
 * Waits for a body without a place among the requests at work, so that callers who send a head and no body hold up nobody
 * else. `settle` is called once, with the Problem when the body does not come; the place is taken again before.
 */
const awaitBody = (
  { caller, deadlineMs, holding, goOn }: Awaiting,
  bytes: number,
  settle: (problem?: Problem) => void,
): ((problem?: Problem) => void) => {
  let isSettled = false
  const end = (problem?: Problem): void => {
    if (isSettled) return
    isSettled = true
    clearTimeout(late)
    settle(problem ?? placeAgain(caller, holding))
  }
  const giveUp = (): void =>
    end(new Problem('request_timeout', { detail: 'Too many bodies are awaited.', headers: CLOSE }))
  const late = setTimeout(() => end(new Problem('request_timeout', { headers: CLOSE })), deadlineMs)
  holding?.wait(caller, { bytes, giveUp })
  goOn?.()
  return end
}

const placeAgain = (caller: string, holding: Holding | undefined): Problem | undefined => {
  try {
    holding?.work(caller)
    return undefined
  } catch (error) {
    if (error instanceof Problem) return error
    throw error
  }
}

const readBytes = (req: IncomingMessage, awaiting: Awaiting): Promise<Buffer> =>
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

/**
 * Resolves when the whole body is there, and leaves it unread: for a handler that reads it itself. What is there stays
 * within the buffer of the stream, which is larger than `maxBytes`. Throws Problem.
 */
export const bodyArrived = (req: IncomingMessage, maxBytes: number, awaiting: Awaiting): Promise<void> =>
  new Promise((resolve, reject) => {
    if (!isAnnounced(req)) return resolve()
    if (lengthOf(req) > maxBytes) return reject(tooLarge(maxBytes))
    const look = (): void => {
      if (req.readableLength > maxBytes) end(tooLarge(maxBytes))
      else if (req.complete) end()
    }
    const gone = (): void => end(new Problem('bad_request_framing'))
    const end = awaitBody(awaiting, lengthOf(req) || maxBytes, problem => {
      req.off('readable', look).off('close', gone).off('error', gone)
      // The stream forgets in its next turn that it was being looked at; its reader begins after that.
      setImmediate(() => (problem ? reject(problem) : resolve()))
    })
    req.on('readable', look).on('close', gone).on('error', gone)
  })
