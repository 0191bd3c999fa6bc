/** `reason` is a sentence or a stack. `isUnavailable`: a dependency did not answer; another start may succeed. */
export type StartFailure = { readonly reason: string; readonly isUnavailable: boolean }

/** Called by a child on its parent. */
export type ParentOperations = {
  readonly ready: (address: string) => void
  readonly notStarted: (failure: StartFailure) => void
}

/** Called by the parent on a child. */
export type ChildOperations = {
  /** Answered at once. */
  readonly ping: (...args: never[]) => void
  /** The child closes, and ends. */
  readonly stop: () => void
}
