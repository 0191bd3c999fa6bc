import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

const FORM_MAX_BYTES = 8_192
const DROPPED_MAX_BYTES = 1_048_576
const FORM_TYPE = 'application/x-www-form-urlencoded'

/** Undefined if the body is too large or the client has disconnected. */
const readBody = async (request: IncomingMessage): Promise<string | undefined> => {
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of request) {
      bytes += (chunk as Buffer).length
      // An oversized body is read and discarded, so the response arrives; beyond this limit the connection is
      // closed.
      if (bytes > DROPPED_MAX_BYTES) return undefined
      if (bytes <= FORM_MAX_BYTES) chunks.push(chunk as Buffer)
    }
  } catch {
    return undefined
  }
  return bytes > FORM_MAX_BYTES ? undefined : Buffer.concat(chunks).toString('utf8')
}

/** Undefined for a request that no page of the issuer sends: another type, too large, a duplicate field. */
export const readForm = async (request: IncomingMessage): Promise<ReadonlyMap<string, string> | undefined> => {
  const type = (request.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase()
  const body = type === FORM_TYPE ? await readBody(request) : undefined
  if (body === undefined) return undefined
  const fields = [...new URLSearchParams(body)]
  const form = new Map(fields)
  return form.size === fields.length ? form : undefined
}

/** Proves that the form is from a page of this login (CSRF), also where SameSite is not respected. */
export const formProof = (key: string, uid: string): string =>
  createHmac('sha256', key).update(`form ${uid}`).digest('base64url')

export const isProof = (expected: string, proof: string | undefined): boolean => {
  const [one, other] = [Buffer.from(expected), Buffer.from(proof ?? '')]
  return one.length === other.length && timingSafeEqual(one, other)
}

/** Whether the browser reports another site as the origin. Clients other than browsers send no such header. */
export const isFromElsewhere = ({ headers }: IncomingMessage): boolean => {
  const site = headers['sec-fetch-site']
  if (site !== undefined) return site !== 'same-origin'
  const { origin, host } = headers
  return origin !== undefined && (!URL.canParse(origin) || new URL(origin).host !== host)
}
