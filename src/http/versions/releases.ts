import { type NewestVersion, type OlderVersion, type Version, VERSIONS } from './index.ts'
import { SECOND_MS } from '../../lib/time.ts'

/** Who answers for each version of the contract, and when it ends: for headers, `ledger versions` and the pages. */

export type Release = {
  /** Answers questions about the version, and supports clients that leave it. */
  readonly owner: string
  readonly deprecation?: Deprecation
}

/** Dates at midnight UTC. */
export type Deprecation = {
  /** From this date on the version is deprecated: it is announced in every response. */
  readonly date: string
  /** From this date on the version may be retired. */
  readonly sunset: string
}

export type Releases = Readonly<Record<OlderVersion, Release> & Record<NewestVersion, Omit<Release, 'deprecation'>>>

export const RELEASES: Releases = {
  // It has no date of deprecation yet: requests without API-Version are of this version.
  '2026-11-01': { owner: 'API team' },
  '2026-11-22': { owner: 'API team' },
}

/** Every version but the newest has one. */
export const successorOf = (version: Version): Version | undefined => VERSIONS[VERSIONS.indexOf(version) + 1]

/** The page of a version: its changes, and how to migrate to it. */
export const pageOf = (version: Version): string => `/docs/versions/${version}`

const timeOf = (date: string): number => Date.parse(`${date}T00:00:00Z`)

/** Deprecation (RFC 9745), Sunset (RFC 8594) and links (RFC 5829) of a deprecated version; undefined for others. */
export const deprecationHeaders = (
  version: Version,
  releases: Releases = RELEASES,
): Readonly<Record<string, string>> | undefined => {
  const { deprecation }: Release = releases[version]
  const successor = successorOf(version)
  if (deprecation === undefined || successor === undefined) return undefined
  const page = pageOf(successor)
  return {
    Deprecation: `@${timeOf(deprecation.date) / SECOND_MS}`,
    Sunset: new Date(timeOf(deprecation.sunset)).toUTCString(),
    Link: `<${page}>; rel="deprecation"; type="text/html", <${page}>; rel="successor-version"; type="text/html"`,
  }
}
