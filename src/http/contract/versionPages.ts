import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { TEXT_PAGE_POLICY } from '../response/contentSecurityPolicy.ts'
import { Problem } from '../problems/problemCatalogue.ts'
import { type AnyRoute, route } from '../route.ts'
import { isVersion, OLDEST_VERSION, type Version } from '../versions/index.ts'
import { type Release, RELEASES, successorOf } from '../versions/releases.ts'

/** The page of each version that replaced another, with the migration guide that deprecated versions link to. */

const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
const escaped = (text: string): string => text.replace(/[&<>"]/g, character => escapes[character] ?? '')

/** The end of the version before this one, from the table of releases. */
const endOfPredecessor = (version: Version): string => {
  const predecessor = Object.keys(RELEASES)
    .filter(isVersion)
    .find(other => successorOf(other) === version)
  if (predecessor === undefined) return ''
  const { owner, deprecation }: Release = RELEASES[predecessor]
  const dates = deprecation
    ? `It is deprecated since ${deprecation.date} and may be switched off from ${deprecation.sunset} on.`
    : 'It is not deprecated. Its end will be announced at least 90 days ahead, in every response.'
  return `<h2>The end of ${predecessor}</h2><p>${dates} Support for the migration: ${escaped(owner)}.</p>`
}

const pageOf = async (version: Version): Promise<string> => {
  const guide = await readFile(new URL(`../versions/${version}.html`, import.meta.url), 'utf8')
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>API version ${version}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>body{font:1rem/1.5 system-ui,sans-serif;max-width:60rem;margin:3rem auto;padding:0 1rem}
table{border-collapse:collapse}th,td{border:1px solid;padding:.25rem .5rem;text-align:left;vertical-align:top}</style>
${guide}${endOfPredecessor(version)}
</html>
`
}

const readVersion = route({
  method: 'GET',
  path: '/docs/versions/{version}',
  operationId: 'read_version',
  summary: 'Read the changes of an API version and its migration guide',
  tag: 'Contract',
  scope: 'none',
  offers: ['text/html'],
  params: z.object({ version: z.iso.date() }),
  responses: { 200: { description: 'A page.', schema: z.string(), contentType: 'text/html' } },
  handler: async ({ params: { version } }) => {
    if (!isVersion(version) || version === OLDEST_VERSION)
      throw new Problem('resource_not_found', {
        detail: 'No migration leads to this version. /docs lists the versions.',
      })
    const headers = {
      'Cache-Control': 'public, max-age=3600',
      'Content-Security-Policy': TEXT_PAGE_POLICY,
    }
    return { status: 200, body: await pageOf(version), contentType: 'text/html; charset=utf-8', headers }
  },
})

export const versionPageRoutes: readonly AnyRoute[] = [readVersion]
