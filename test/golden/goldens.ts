import { existsSync, readdirSync, readFileSync } from 'node:fs'
import type { JsonObject, StoredEvent } from '../../src/ports.ts'
import { streamOf } from '../../streams/aggregate.ts'
import { aggregates, type Category } from '../../streams/index.ts'

/** The recorded stored events: `<Type>.v<n>.json`, or `<Type>.v<n>.<what>.json` for a second example of the type. */

export const folder = new URL('./', import.meta.url)
const FILE = /^(?<type>\w+)\.v(?<version>\d+)(?:\.[\w-]+)?\.json$/
const SUFFIX = '1CJJVV7ZPCAXKND93ZQX2STY98'

export type Golden = { readonly path: string; readonly type: string; readonly version: number; readonly text: string }

const namesIn = (category: string): string[] => {
  const place = new URL(`${category}/`, folder)
  return existsSync(place) ? readdirSync(place) : []
}

export const goldensOf = (category: Category): Golden[] =>
  namesIn(category).map(name => {
    const { type = '', version = '' } = FILE.exec(name)?.groups ?? {}
    const path = `${category}/${name}`
    return { path, type, version: Number(version), text: readFileSync(new URL(path, folder), 'utf8') }
  })

/** The event as the store would return it. */
export const stored = (category: Category, text: string): StoredEvent => {
  const { type, data, metadata } = JSON.parse(text) as { type: string; data: JsonObject; metadata: JsonObject }
  const stream = streamOf(aggregates[category], `${aggregates[category].prefix}_${SUFFIX}`)
  const id = '00000000-0000-8000-a000-000000000000'
  return { id, type, data, metadata, stream, revision: 3n, position: 7_731_904n, storedAt: '' }
}

export const categories = Object.keys(aggregates) as Category[]
