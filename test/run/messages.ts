/** The messages between the runner and its worker processes (`process.send`). */

/** `run` names a test file. `end` makes the worker stop its shared services and exit. */
export type WorkerCommand = { readonly run: string } | { readonly end: true }

export type FileResult = {
  readonly passed: number
  /** One text per failure: the title, the stack trace and the difference, as mocha prints them. */
  readonly failures: readonly string[]
}

/** `ready`: the worker has started. `result`: its file has ended. */
export type WorkerMessage = { readonly ready: true } | { readonly result: FileResult }

export type RunOptions = {
  readonly grep?: string | undefined
  /** In place of the time limit in .mocharc.json. */
  readonly caseMaxMs?: number | undefined
  readonly isColored: boolean
}
