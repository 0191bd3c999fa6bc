/** The messages between the runner and its workers (process.send). */

/** A file to be run, or the order to close shared resources and to end. */
export type Order = { readonly run: string } | { readonly end: true }

export type FileResult = {
  readonly passed: number
  /** One text per failure: the title, the stack and the difference, as mocha prints them. */
  readonly failures: readonly string[]
}

/** `ready` when the worker can take a file; `result` when the file has ended. */
export type Report = { readonly ready: true } | { readonly result: FileResult }

export type RunOptions = {
  readonly grep?: string | undefined
  readonly isColored: boolean
}
