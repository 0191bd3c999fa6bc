import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

const FORM_MAX_BYTES = 8_192
const DROPPED_MAX_BYTES = 1_048_576
const FORM_TYPE = 'application/x-www-form-urlencoded'

/** Undefined for too much, and when the sender is gone. */
const readBody = async (request: IncomingMessage): Promise<string | undefined> => {
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of request) {
      bytes += (chunk as Buffer).length
      // What is too much is read and dropped, so that the answer arrives; whoever sends without end is cut off.
      if (bytes > DROPPED_MAX_BYTES) return undefined
      if (bytes <= FORM_MAX_BYTES) chunks.push(chunk as Buffer)
    }
  } catch {
    return undefined
  }
  return bytes > FORM_MAX_BYTES ? undefined : Buffer.concat(chunks).toString('utf8')
}

/** The fields of a posted form; undefined for what no page of ours sends: another type, too much, a field twice. */
export const readForm = async (request: IncomingMessage): Promise<ReadonlyMap<string, string> | undefined> => {
  const type = (request.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase()
  const body = type === FORM_TYPE ? await readBody(request) : undefined
  if (body === undefined) return undefined
  const fields = [...new URLSearchParams(body)]
  const form = new Map(fields)
  return form.size === fields.length ? form : undefined
}

/**
 * Proves that a form was on a page that we made for this login. Browsers do not send our cookies with what other sites
 * post; this holds where a browser, or another program on this host name, is not so careful.
 */
export const formProof = (key: string, uid: string): string =>
  createHmac('sha256', key).update(`form ${uid}`).digest('base64url')

export const isProof = (expected: string, given: string | undefined): boolean => {
  const [one, other] = [Buffer.from(expected), Buffer.from(given ?? '')]
  return one.length === other.length && timingSafeEqual(one, other)
}

/** Whether the browser says that another site sent this. Programs that are no browsers say nothing. */
export const isFromElsewhere = ({ headers }: IncomingMessage): boolean => {
  const site = headers['sec-fetch-site']
  if (site !== undefined) return site !== 'same-origin'
  const { origin, host } = headers
  return origin !== undefined && (!URL.canParse(origin) || new URL(origin).host !== host)
}
