import type { Response as Outgoing } from 'express'
import { NEWEST_VERSION, type Version, VERSIONS } from './index.ts'
import { deprecationHeaders, RELEASES, type Releases } from './releases.ts'

export type RequestedVersion = {
  readonly version: Version
  /** The error code of a request whose API-Version cannot be served. */
  readonly refusal?: 'unsupported_api_version' | 'version_retired'
  /** The versions that a refused request could choose. */
  readonly available?: readonly Version[]
  /** The headers that announce the end of the version. */
  readonly deprecation?: Readonly<Record<string, string>>
}

export const requestedVersionOf = ({ locals }: Pick<Outgoing, 'locals'>): RequestedVersion =>
  locals['requestedVersion'] as RequestedVersion

/** Resolves the header to a version: the oldest that is served where the header is absent. */
export type ResolveVersion = (header: string | undefined) => RequestedVersion

/** `retired`: the versions that an operator has switched off. The newest one is always served. */
export const resolveVersionWithout = (retired: ReadonlySet<string>, releases: Releases = RELEASES): ResolveVersion => {
  const served = (version: Version): RequestedVersion => {
    const deprecation = deprecationHeaders(version, releases)
    return { version, ...(deprecation ? { deprecation } : {}) }
  }
  const available = VERSIONS.filter(version => !retired.has(version) || version === NEWEST_VERSION)
  const [oldest = NEWEST_VERSION] = available
  const absent = served(oldest)
  const retiredOne: RequestedVersion = { ...absent, refusal: 'version_retired', available }
  const unknown: RequestedVersion = { ...absent, refusal: 'unsupported_api_version', available }
  const requested = new Map<string, RequestedVersion>(
    VERSIONS.map(version => [version, available.includes(version) ? served(version) : retiredOne]),
  )
  return header => (header === undefined ? absent : (requested.get(header) ?? unknown))
}
