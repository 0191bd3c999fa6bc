import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { expect } from 'chai'
import { newEventOf, recordedOf } from '../../src/commands/recorded.ts'
import type { JsonObject, StoredEvent } from '../../src/ports.ts'
import type { Codec } from '../../streams/codec.ts'
import type { AnyEvent } from '../../streams/decider.ts'
import { aggregates, type Category } from '../../streams/index.ts'

/**
 * Stored events as this service has written them, one file for each type and version: `<Type>.v<n>.json`, or
 * `<Type>.v<n>.<what>.json` for one more. Files are added, never edited: somewhere there is a log that holds such events.
 */

const folder = new URL('./', import.meta.url)
const FILE = /^(?<type>\w+)\.v(?<version>\d+)(?:\.[\w-]+)?\.json$/

type Golden = { readonly path: string; readonly type: string; readonly version: number; readonly text: string }

const namesIn = (category: string): string[] => {
  const place = new URL(`${category}/`, folder)
  return existsSync(place) ? readdirSync(place) : []
}

const goldensOf = (category: string): Golden[] =>
  namesIn(category).map(name => {
    const { type = '', version = '' } = FILE.exec(name)?.groups ?? {}
    const path = `${category}/${name}`
    return { path, type, version: Number(version), text: readFileSync(new URL(path, folder), 'utf8') }
  })

const codecOf = (category: Category): Codec<AnyEvent> => {
  const { types, decode, encode } = aggregates[category].codec
  return { types, decode, encode: encode as Codec<AnyEvent>['encode'] }
}

/** The event as the store would hand it out. */
const stored = (category: string, text: string): StoredEvent => {
  const { type, data, metadata } = JSON.parse(text) as { type: string; data: JsonObject; metadata: JsonObject }
  const id = '00000000-0000-8000-a000-000000000000'
  return { id, type, data, metadata, stream: `${category}-x`, revision: 0n, position: 0n, storedAt: '' }
}

const recode = (category: Category, text: string): string => {
  const { id: _, ...again } = newEventOf(codecOf(category), recordedOf(codecOf(category), stored(category, text)))
  return `${JSON.stringify(again, null, 2)}\n`
}

/** The version that the codec stores today, from any golden event of the type. */
const latestOf = (category: Category, { text }: Golden): number =>
  newEventOf(codecOf(category), recordedOf(codecOf(category), stored(category, text))).metadata[
    'schemaVersion'
  ] as number

const categories = Object.keys(aggregates) as Category[]

describe('stored events', () => {
  it('have a folder for each aggregate, and no other', () => {
    const folders = readdirSync(folder, { withFileTypes: true }).filter(entry => entry.isDirectory())
    expect(folders.map(({ name }) => name).toSorted()).to.deep.equal(categories.toSorted())
  })

  it('are never edited and never removed', () => {
    const lines = readFileSync(new URL('SHA256SUMS', folder), 'utf8').trimEnd().split('\n')
    const sums = Object.fromEntries(lines.map(line => line.split('  ').toReversed() as [string, string]))
    const found = categories
      .flatMap(category => goldensOf(category))
      .map(({ path, text }) => [path, createHash('sha256').update(text).digest('hex')] as const)
    expect(Object.fromEntries(found), 'SHA256SUMS: add a line for a new file (sha256sum), change none').to.deep.equal(
      sums,
    )
  })

  for (const category of categories) {
    const goldens = goldensOf(category)

    for (const type of codecOf(category).types)
      it(`of ${type} are there in every version`, () => {
        const own = goldens.filter(golden => golden.type === type)
        const [any] = own
        if (any === undefined) return expect.fail(`Add test/golden/${category}/${type}.v1.json.`)
        const versions = Array.from({ length: latestOf(category, any) }, (_, n) => n + 1)
        expect([...new Set(own.map(({ version }) => version))].toSorted((a, b) => a - b)).to.deep.equal(versions)
      })

    for (const golden of goldens)
      it(`of ${golden.path} can be read, and written again as they are`, () => {
        const { type, version, text, path } = golden
        const { event, metadata } = recordedOf(codecOf(category), stored(category, text))
        expect(event.type).to.equal(type)
        expect(metadata.schemaVersion, path).to.equal(version)
        if (version === latestOf(category, golden)) expect(recode(category, text)).to.equal(text)
      })
  }
})
