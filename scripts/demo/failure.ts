/** Why the demo cannot go on, or what is wrong with the books: one sentence for the person at the terminal, no stack. */
export class DemoFailure extends Error {
  constructor(sentence: string, cause?: unknown) {
    super(sentence, { cause })
    this.name = 'DemoFailure'
  }
}
