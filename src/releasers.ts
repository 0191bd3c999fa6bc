type Release = () => Promise<void>

/** What has been acquired, and how it is given back: in the reverse order, each once. */
export type Releasers = {
  readonly add: (release: Release) => void
  /** Twice is once. One that fails is told of, and does not keep the others from running. */
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
