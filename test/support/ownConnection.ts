import { request } from 'node:http'

/** Requests on a connection of their own, which several processes behind one port get in turn. */

export type Received = {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

export type Sent = {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** Rejects when there is no response, and when the response ends early. */
export const onOwnConnection = (url: string, { method = 'GET', headers = {}, body }: Sent = {}): Promise<Received> =>
  new Promise((resolve, reject) => {
    const sent = request(url, { method, headers, agent: false }, response => {
      let text = ''
      response.setEncoding('utf8').on('data', chunk => (text += chunk))
      response.on('error', () => reject(new TruncatedResponse(text)))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }))
    })
    sent.on('error', reject)
    sent.end(body)
  })

export class TruncatedResponse extends Error {
  constructor(text: string) {
    super(`The response ended early, after: ${text}`)
    this.name = 'TruncatedResponse'
  }
}
