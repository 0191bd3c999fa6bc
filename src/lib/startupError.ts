/** Errors that the person at the terminal can act on: no start, or a command that cannot be executed. */

/** One sentence, printed without a stack. Everything else that is thrown is a bug. */
export class StartupError extends Error {
  constructor(sentence: string, cause?: unknown) {
    super(sentence, { cause })
    this.name = 'StartupError'
  }
}

/** The code of a system error (`ENOSPC`), or undefined for anything else. */
export const systemCode = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined

/** What is wrong with a host that a server cannot listen on, by the system error. */
export const hostRefusal = (error: unknown): string | undefined => {
  const code = systemCode(error)
  if (code === 'EADDRNOTAVAIL') return 'is not an address of this machine'
  return code === 'ENOTFOUND' || code === 'EAI_AGAIN' ? 'cannot be resolved' : undefined
}

/** The sentence for an error that an operator can correct; undefined for a bug, which is printed with its stack. */
export const sentenceOf = (error: unknown, { host, port }: { host: string; port: number }): string | undefined => {
  if (error instanceof StartupError) return error.message
  if (systemCode(error) === 'EADDRINUSE')
    return `Port ${port} is already in use. Set PORT to a different port, or to 0 for any free port.`
  if (systemCode(error) === 'EACCES') return `Port ${port} is not permitted. Set PORT to one above 1023.`
  const refusal = hostRefusal(error)
  return refusal && `HOST=${host} ${refusal}. Set it to an address of this machine, or to 0.0.0.0 for all of them.`
}

/** The text with a full stop, unless it ends as a sentence does. */
export const sentence = (text: string): string => (/[.…?!]$/.test(text) ? text : `${text}.`)
