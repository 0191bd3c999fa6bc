/** A failure of the demo that the person at the terminal can act on: one sentence, printed without a stack. */
export class DemoFailure extends Error {
  constructor(sentence: string, cause?: unknown) {
    super(sentence, { cause })
    this.name = 'DemoFailure'
  }
}
