type Release = () => Promise<void>

/** Releases acquired resources in the reverse order, each once. */
export type Releasers = {
  readonly add: (release: Release) => void
  /** Runs once, however often it is called. A failure is reported, and the other resources are released all the same. */
  readonly release: () => Promise<void>
}

export const createReleasers = (onFailure: (error: unknown) => void): Releasers => {
  const releasers: Release[] = []
  let released: Promise<void> | undefined
  const releaseAll = async (): Promise<void> => {
    for (const release of releasers.toReversed()) await release().catch(onFailure)
  }
  return {
    add: release => void releasers.push(release),
    release: () => (released ??= releaseAll()),
  }
}
