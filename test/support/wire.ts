import { request } from 'node:http'
import { checkResponse } from './contract.ts'
import type { Answer } from './client.ts'

/** A request as it goes over the wire: a header may stand twice, and a body may never end. */
export type Wire = {
  readonly method: string
  readonly path: string
  /** Names and values in turn, Host not included. */
  readonly headers: readonly (readonly [string, string])[]
  readonly body?: string
  /** Sends the head and leaves the rest of the body out. */
  readonly unfinished?: boolean
}

/** The answer, held against the contract. */
export const send = async (api: string, { method, path, headers, body, unfinished }: Wire): Promise<Answer> => {
  const { host, hostname, port } = new URL(api)
  const length = body === undefined ? [] : [['Content-Length', String(Buffer.byteLength(body) + (unfinished ? 1 : 0))]]
  const flat = [['Host', host], ...headers, ...length].flat()
  const answer = await new Promise<Answer>((resolve, reject) => {
    const outgoing = request({ method, path, hostname, port, agent: false, headers: flat }, incoming => {
      const chunks: Buffer[] = []
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
      incoming.on('error', reject)
      incoming.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        const pairs = Object.entries(incoming.headers).map(([name, value]): [string, string] => [name, String(value)])
        resolve({ status: incoming.statusCode ?? 0, headers: new Headers(pairs), text, body: parsed(text) })
      })
    })
    outgoing.on('error', reject)
    if (body !== undefined) outgoing.write(body)
    if (!unfinished) outgoing.end()
  })
  await checkResponse(api, { method, path, ...answer })
  return answer
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
