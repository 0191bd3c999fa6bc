/**
 * Mutants: bugs to plant one at a time, to see which tests find them. `replace` takes the place of the text `find` in the file.
 * Each bug is plausible, or was once in the code; then `issue` is its number in the review that found it.
 */
export type Mutant = {
  readonly name: string
  readonly issue?: string
  readonly file: string
  readonly find: string
  readonly replace: string
}
