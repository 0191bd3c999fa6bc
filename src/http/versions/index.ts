/** The dated versions of the contract. A request chooses one with API-Version. */

/** Oldest first. The handlers have the shapes of the newest; requests and responses of the others are translated. */
export const VERSIONS = ['2026-11-01', '2026-11-22'] as const
export type Version = (typeof VERSIONS)[number]

export const OLDEST_VERSION = VERSIONS[0]
export const NEWEST_VERSION = VERSIONS[1] satisfies Last<typeof VERSIONS>
type Last<T extends readonly unknown[]> = T extends readonly [...unknown[], infer L] ? L : never

export type NewestVersion = typeof NEWEST_VERSION
/** Every version that needs a translator. */
export type OlderVersion = Exclude<Version, NewestVersion>

export const isVersion = (text: string): text is Version => (VERSIONS as readonly string[]).includes(text)
