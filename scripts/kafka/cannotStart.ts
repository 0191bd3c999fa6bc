/** Why the broker cannot run here, as one sentence for the person at the terminal: shown without a stack. */
export class CannotStart extends Error {
  constructor(sentence: string, cause?: unknown) {
    super(sentence, { cause })
    this.name = 'CannotStart'
  }
}

/** The code of a system error (`ENOENT`), or an empty text for anything else. */
export const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
