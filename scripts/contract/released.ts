import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { asyncApiOf } from '../../src/http/contract/asyncapi.ts'
import { openApiOf } from '../../src/http/contract/openapi.ts'
import { routes, type Version, VERSIONS } from '../../src/http/index.ts'
import type { Contract, JsonObject } from './documents.ts'

/** src/http/contract/released/<date>/, which is never edited, and the candidates that this code would publish. */

export const RELEASED = new URL('../../src/http/contract/released/', import.meta.url)
const FILES = ['openapi.json', 'asyncapi.json'] as const
const SUMS = 'SHA256SUMS'
const DATE = /^\d{4}-\d{2}-\d{2}$/

/** The dates of all released contracts, oldest first. */
export const releasedDates = (folder = RELEASED): readonly string[] =>
  readdirSync(folder)
    .filter(name => DATE.test(name))
    .toSorted()

/** A released contract is supported as long as the service answers under its date. */
export const isSupported = (date: string): date is Version => VERSIONS.some(version => version === date)

const parsed = (text: string): JsonObject => JSON.parse(text) as JsonObject

export const readContract = (folder: URL): Contract => ({
  openapi: parsed(readFileSync(new URL('openapi.json', folder), 'utf8')),
  asyncapi: parsed(readFileSync(new URL('asyncapi.json', folder), 'utf8')),
})

export const readReleased = (date: string): Contract => readContract(new URL(`${date}/`, RELEASED))

/** Both documents as GET /openapi.json and GET /asyncapi.json would return them under this date. */
export const candidateOf = (version: Version): Contract => ({
  openapi: parsed(JSON.stringify(openApiOf(routes, version))),
  asyncapi: parsed(JSON.stringify(asyncApiOf(version))),
})

const sumOf = (content: string | Buffer): string => createHash('sha256').update(content).digest('hex')

/** The lines of SHA256SUMS as the files are now. */
const currentSums = (folder: URL): readonly string[] =>
  releasedDates(folder).flatMap(date =>
    FILES.map(file => `${sumOf(readFileSync(new URL(`${date}/${file}`, folder)))}  ${date}/${file}`),
  )

const recordedSums = (folder: URL): readonly string[] => {
  const file = new URL(SUMS, folder)
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
}

/** The files that were edited, added or removed by hand after their release. */
export const editedFiles = (folder = RELEASED): readonly string[] => {
  const [recorded, current] = [new Set(recordedSums(folder)), new Set(currentSums(folder))]
  return [...new Set([...recorded.symmetricDifference(current)].map(line => line.split('  ')[1] ?? line))]
}

/** Writes the documents of a version that is served and was never released. Throws an Error otherwise. */
export const release = (date: string, folder = RELEASED): readonly string[] => {
  if (!isSupported(date)) throw new Error(`${date} is not served: src/http/versions has ${VERSIONS.join(', ')}.`)
  if (releasedDates(folder).includes(date))
    throw new Error(`${date} is released already, and a released contract never changes.`)
  const { openapi, asyncapi } = candidateOf(date)
  mkdirSync(new URL(`${date}/`, folder), { recursive: true })
  for (const [file, document] of Object.entries({ 'openapi.json': openapi, 'asyncapi.json': asyncapi }))
    writeFileSync(new URL(`${date}/${file}`, folder), `${JSON.stringify(document, null, 2)}\n`)
  writeFileSync(new URL(SUMS, folder), `${currentSums(folder).join('\n')}\n`)
  return FILES.map(file => `${date}/${file}`)
}
