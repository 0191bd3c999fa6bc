/**
 * Connection strings of the event store. The schemes of KurrentDB mean the same as `esdb:`, which is the only one that
 * the official client knows.
 */

const SCHEME = /^(?:esdb|kurrentdb|kdb)(?=(?:\+discover)?:\/\/)/
/** As the client reads it: the password may contain `/`. */
const FORM = /^esdb(\+discover)?:\/\/(?:([^:]+:[^@]+)@)?([^/?]*)\/*(?:\?(.*))?$/s

/** The same connection string with the scheme that the client knows. */
export const asEsdb = (address: string): string => address.trim().replace(SCHEME, 'esdb')

export type StoreAddress = {
  /** With their ports, if they are given. */
  readonly hosts: readonly string[]
  /** The hosts are asked for the nodes of their cluster. */
  readonly discovers: boolean
  readonly credentials: { readonly user: string; readonly password: string } | undefined
  /** The parameters in their order. The client ignores case, `_` and `-` in a name: here it has small letters alone. */
  readonly parameters: readonly (readonly [name: string, value: string])[]
  /** The value of a parameter; of one that is repeated, the last. */
  readonly setting: (name: string) => string | undefined
}

const parameterIn = (text: string): readonly [string, string] => {
  const [name = '', ...value] = text.split('=')
  return [name.trim().toLowerCase().replaceAll(/[_-]/g, ''), decodeURIComponent(value.join('=').trim())]
}

/** Undefined for a text of another form, and for one with a `%` that begins no escape. */
export const parseStoreAddress = (address: string): StoreAddress | undefined => {
  const [found, discover, login, hosts = '', query = ''] = FORM.exec(asEsdb(address)) ?? []
  if (found === undefined || hosts === '') return undefined
  try {
    const [user = '', password = ''] = (login ?? '').split(':').map(decodeURIComponent)
    const parameters = query === '' ? [] : query.split('&').map(parameterIn)
    return {
      hosts: hosts.split(',').map(host => host.trim()),
      discovers: discover !== undefined,
      credentials: login === undefined ? undefined : { user, password },
      parameters,
      setting: wanted => parameters.findLast(([name]) => name === wanted)?.[1],
    }
  } catch {
    return undefined
  }
}

/** Of a connection string that the client has accepted. */
export const storeAddressOf = (address: string): StoreAddress => {
  const parsed = parseStoreAddress(address)
  if (parsed === undefined) throw new TypeError('This is no connection string of an event store.')
  return parsed
}
