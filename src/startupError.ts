/** The errors that the person at the terminal can act on: the service does not start, or a command cannot be executed. */

/** Its message is one sentence, printed without a stack. Everything else that is thrown is a bug and keeps its stack. */
export class StartupError extends Error {
  constructor(sentence: string, cause?: unknown) {
    super(sentence, { cause })
    this.name = 'StartupError'
  }
}

/** The code of a system error (`ENOSPC`), or undefined for anything else. */
export const systemCode = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
