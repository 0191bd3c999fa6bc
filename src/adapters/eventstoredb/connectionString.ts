/** The parts of a connection string that the official client keeps to itself. It has already refused what it cannot parse. */
export type ConnectionParts = {
  /** With their ports, if they are given. */
  readonly hosts: readonly string[]
  readonly credentials: { readonly user: string; readonly password: string } | undefined
  /** The value of a setting; its name in small letters. */
  readonly setting: (name: string) => string | undefined
}

const FORM = /^esdb(?:\+discover)?:\/\/(?:([^@/]*)@)?([^/?]*)\/?\??(.*)$/

export const connectionParts = (connectionString: string): ConnectionParts => {
  const [, login = '', hosts = '', query = ''] = FORM.exec(connectionString.trim()) ?? []
  const [user = '', password = ''] = login.split(':').map(decodeURIComponent)
  const settings = new Map([...new URLSearchParams(query)].map(([name, value]) => [name.toLowerCase(), value]))
  return {
    hosts: hosts.split(','),
    credentials: login === '' ? undefined : { user, password },
    setting: name => settings.get(name),
  }
}
