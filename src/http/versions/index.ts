/** The dated API versions that are served, oldest first. A request without API-Version gets the oldest. */
export const VERSIONS = ['2026-11-01'] as const
export type Version = (typeof VERSIONS)[number]

export const OLDEST_VERSION: Version = VERSIONS[0]

export const isVersion = (text: string): text is Version => (VERSIONS as readonly string[]).includes(text)
