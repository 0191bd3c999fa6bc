import {
  ANY_NUMBER,
  type Body,
  type Exchange,
  type Form,
  FORMS,
  linksOf,
  type RecordedResponse,
  TOKEN,
} from './exchange.ts'

/**
 * Replays recorded exchanges: a response may have more members than the recorded one, and other words for people in the
 * members of PROSE; nothing else may differ.
 */

export type Observed = { readonly status: number; readonly headers: Headers; readonly body: unknown }
/** The values of this run by token name. */
export type Bindings = Map<string, string>

const escaped = (text: string): string => RegExp.escape(text)

const formOf = (name: string): string => FORMS[name as Form] ?? FORMS.id

/** Whether the text has the recorded form; binds the tokens that appear for the first time. */
const matchesText = (recorded: string, actual: string, bindings: Bindings): boolean => {
  const names: string[] = []
  let source = ''
  let end = 0
  for (const result of recorded.matchAll(TOKEN)) {
    const [token, name = '', number] = result
    const bound = bindings.get(token)
    source += escaped(recorded.slice(end, result.index))
    if (bound !== undefined) source += escaped(bound)
    else if (names.includes(token)) source += `\\${names.indexOf(token) + 1}`
    else if (number === undefined && name !== 'tenant') source += `(?:${formOf(name)})`
    else {
      names.push(token)
      source += `(${formOf(name)})`
    }
    end = result.index + token.length
  }
  const matched = new RegExp(`^${source}${escaped(recorded.slice(end))}$`).exec(actual)
  if (matched === null) return false
  for (const [index, token] of names.entries()) bindings.set(token, matched[index + 1] ?? '')
  return true
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Clients show these members and do not parse them (RFC 9457, section 3.1). */
const PROSE: ReadonlySet<string> = new Set(['detail', 'title'])
const isProse = (name: string, ...values: readonly unknown[]): boolean =>
  PROSE.has(name) && values.every(value => typeof value === 'string' && value !== '')

const differences = (recorded: Body, actual: unknown, bindings: Bindings, path: string): readonly string[] => {
  const different = [`${path || 'the body'} was ${JSON.stringify(recorded)} and is ${JSON.stringify(actual)}`]
  if (recorded === ANY_NUMBER) return typeof actual === 'number' || actual === null ? [] : different
  if (typeof recorded === 'string')
    return typeof actual === 'string' && matchesText(recorded, actual, bindings) ? [] : different
  if (Array.isArray(recorded)) {
    if (!Array.isArray(actual) || actual.length !== recorded.length) return different
    return recorded.flatMap((one: Body, index) => differences(one, actual[index], bindings, `${path}/${index}`))
  }
  if (isObject(recorded)) {
    if (!isObject(actual)) return different
    // A member that is added passes: clients ignore fields that they do not know.
    return Object.entries(recorded).flatMap(([name, one]) => {
      if (!(name in actual)) return [`${path}/${name} is missing`]
      if (isProse(name, one, actual[name])) return []
      return differences(one, actual[name], bindings, `${path}/${name}`)
    })
  }
  return recorded === actual ? [] : different
}

/** Every difference that the recorded client would notice. */
export const responseDifferences = (
  recorded: RecordedResponse,
  { status, headers, body }: Observed,
  bindings: Bindings,
): readonly string[] => [
  ...(recorded.status === status ? [] : [`the status was ${recorded.status} and is ${status}`]),
  ...Object.entries(recorded.headers).flatMap(([name, value]) => {
    const actual = headers.get(name)
    if (actual === null) return [`the header ${name} is missing`]
    const values = name === 'link' ? linksOf(actual) : [actual]
    return values.some(one => matchesText(value, one, bindings))
      ? []
      : [`the header ${name} was ${value} and is ${actual}`]
  }),
  ...(recorded.body === undefined ? [] : differences(recorded.body, body, bindings, '')),
]

/** The text with the values of this run. Throws an Error for a token that no response has bound. */
const filled = (text: string, bindings: Bindings): string =>
  text.replaceAll(TOKEN, token => {
    const value = bindings.get(token)
    if (value === undefined) throw new Error(`No response has bound ${token}.`)
    return value
  })

/** The recorded request with the values of this run. */
export const requestWith = ({ request }: Exchange, bindings: Bindings) => ({
  method: request.method,
  path: filled(request.path, bindings),
  headers: Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, filled(value, bindings)])),
  ...(request.body === undefined ? {} : { body: JSON.parse(filled(JSON.stringify(request.body), bindings)) as object }),
})
