/** Releases acquired resources in the reverse order of their acquisition, each once. */
export type CleanupStack = {
  readonly defer: (release: Release) => void
  /** Runs once. A failure is reported, and the other resources are released all the same. */
  readonly run: () => Promise<void>
}

type Release = () => Promise<void>

export const createCleanupStack = (onFailure: (error: unknown) => void): CleanupStack => {
  const deferred: Release[] = []
  let done: Promise<void> | undefined
  const releaseAll = async (): Promise<void> => {
    for (const release of deferred.toReversed()) await release().catch(onFailure)
  }
  return {
    defer: release => void deferred.push(release),
    run: () => (done ??= releaseAll()),
  }
}
