/** Recorded exchanges of a client with the service, in which ids, times and other values of one run are tokens: `{{ord_1}}`. */

export type Body = string | number | boolean | null | readonly Body[] | { readonly [name: string]: Body }

export type RecordedRequest = {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Body
  /** Repeated until the response is the recorded one: the client waits for a state. */
  readonly eventually?: true
}
export type RecordedResponse = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Body
}
export type Exchange = { readonly request: RecordedRequest; readonly response: RecordedResponse }

/** The headers that clients act on. */
export const HEADERS_THAT_MATTER = [
  'accept-patch',
  'accept-post',
  'allow',
  'api-version',
  'cache-control',
  'content-disposition',
  'content-type',
  'etag',
  'idempotent-replayed',
  'ledger-position',
  'link',
  'location',
  'preference-applied',
  'retry-after',
  'www-authenticate',
] as const

/** The form of the values that a token stands for. A bound token has a number: equal numbers are equal values. */
export const FORMS = {
  id: '(?:ord|inv|pay|rfd|op|sub|key)_[0-9A-HJKMNP-TV-Z]{26}',
  secret: 'lk_[a-z]+_[0-9A-Za-z_]+',
  time: '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(?:\\.\\d+)?Z',
  uuid: '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}',
  sha256: '[0-9a-f]{64}',
  etag: '"[^"]+"',
  position: '\\d{1,19}',
  tenant: '[a-z0-9-]+',
  cursor: '[\\w.-]+',
  host: 'http://[^/"]+',
} as const
export type Form = keyof typeof FORMS

/** A number that depends on the run, such as a rate. */
export const ANY_NUMBER = '{{number}}'

export const TOKEN = /\{\{([a-z]\w*?)(?:_(\d+))?\}\}/g

/** The links of a Link header (RFC 8288), each a text of its own. */
export const linksOf = (header: string | null): readonly string[] => (header ?? '').split(/,\s*(?=<)/)
