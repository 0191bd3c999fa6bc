import { ANY_NUMBER, type Body, type Exchange, type Form, FORMS, HEADERS_THAT_MATTER, linksOf } from './exchange.ts'

/** Turns real requests and responses into recorded exchanges: values of the run become tokens. */

type Sent = {
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string>
  readonly body?: Body
}
type Received = { readonly status: number; readonly headers: Headers; readonly body: unknown }

/** Members whose values depend on the run although their form does not tell. */
const FORM_OF_MEMBER: Readonly<Record<string, Form>> = {
  as_of_position: 'position',
  position: 'position',
  from_position: 'position',
  to_position: 'position',
  next_cursor: 'cursor',
}
const NUMBERS: ReadonlySet<string> = new Set(['rate', 'eta_seconds', 'byte_count', 'lag'])

const FOUND_ANYWHERE = (['secret', 'id', 'time', 'uuid', 'sha256'] as const).map(form => FORMS[form])
/** These forms are not compared between responses: two times may be equal in one run and differ in the next. */
const UNBOUND: ReadonlySet<Form> = new Set(['time', 'uuid', 'sha256', 'host'])

/** Other links, such as that of a deprecation, come and go. */
const NEXT = 'rel="next"'
const NO_RESOURCE = /_0{26}$/

export const createRecorder = ({ tenant, api }: { readonly tenant: string; readonly api: string }) => {
  const tokens = new Map<string, string>([[tenant, '{{tenant}}']])
  const counts = new Map<string, number>()
  const cursors: string[] = []
  const pattern = new RegExp([...FOUND_ANYWHERE, tenant, api].map(source => `(?:${source})`).join('|'), 'g')

  const formOf = (value: string): Form =>
    value === api
      ? 'host'
      : ((Object.keys(FORMS) as Form[]).find(form => new RegExp(`^${FORMS[form]}$`).test(value)) ?? 'id')

  const newToken = (value: string, form: Form): string => {
    if (UNBOUND.has(form)) return `{{${form}}}`
    const name = form === 'id' ? (value.split('_')[0] ?? form) : form
    const count = (counts.get(name) ?? 0) + 1
    counts.set(name, count)
    const token = `{{${name}_${count}}}`
    tokens.set(value, token)
    return token
  }
  /** An id of zeros is the client's own: no resource has it. */
  const tokenFor = (value: string): string =>
    tokens.get(value) ?? (NO_RESOURCE.test(value) ? value : newToken(value, formOf(value)))

  const tokenized = (text: string): string => {
    const known = cursors.reduce((all, cursor) => all.replaceAll(cursor, tokens.get(cursor) ?? cursor), text)
    return known.replaceAll(pattern, tokenFor)
  }

  const tokenizedBody = (value: unknown, name = ''): Body => {
    if (NUMBERS.has(name) && typeof value === 'number') return ANY_NUMBER
    if (Array.isArray(value)) return value.map(one => tokenizedBody(one, name))
    if (typeof value === 'string') {
      const form = FORM_OF_MEMBER[name]
      if (form === 'cursor') cursors.push(value)
      if (form === 'cursor') return newToken(value, form)
      return form === undefined ? tokenized(value) : `{{${form}}}`
    }
    if (typeof value !== 'object' || value === null) return value as Body
    return Object.fromEntries(Object.entries(value).map(([member, inner]) => [member, tokenizedBody(inner, member)]))
  }

  /** Each ETag and position gets a token of its own: they are opaque, so that two equal ones may differ tomorrow. */
  const headerOf = (name: string, value: string): string => {
    if (name === 'etag') return newToken(value, 'etag')
    if (name === 'ledger-position') return newToken(value, 'position')
    return tokenized(value)
  }
  const sentHeader = (value: string): string => tokens.get(value) ?? tokenized(value)

  return (sent: Sent, received: Received, eventually: boolean): Exchange => {
    const request = {
      method: sent.method,
      path: tokenized(sent.path),
      headers: Object.fromEntries(Object.entries(sent.headers).map(([name, value]) => [name, sentHeader(value)])),
      ...(sent.body === undefined ? {} : { body: tokenizedBody(sent.body) }),
      ...(eventually ? { eventually: true as const } : {}),
    }
    // The body first: the Link header repeats its cursor.
    const body = received.body === undefined ? {} : { body: tokenizedBody(received.body) }
    const headers = HEADERS_THAT_MATTER.flatMap(name => {
      const value = received.headers.get(name)
      const recorded = name === 'link' ? linksOf(value).find(link => link.endsWith(NEXT)) : value
      return recorded === undefined || recorded === null ? [] : [[name, headerOf(name, recorded)] as const]
    })
    return { request, response: { status: received.status, headers: Object.fromEntries(headers), ...body } }
  }
}
