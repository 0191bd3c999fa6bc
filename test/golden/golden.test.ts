import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { expect } from 'chai'
import { newEventOf, recordedOf } from '../../src/lib/storedEvents.ts'
import { ADDED_EVENTS } from '../../streams/addedEvents.ts'
import type { Codec } from '../../streams/codec.ts'
import type { AnyEvent } from '../../streams/decider.ts'
import { aggregates, type Category } from '../../streams/index.ts'
import { categories, folder, type Golden, goldensOf, stored } from './goldens.ts'

/**
 * Stored events as this service has written them, one file for each type and version: `<Type>.v<n>.json`, or
 * `<Type>.v<n>.<what>.json` for one more. Files are added, never edited: somewhere there is a log that holds such events.
 */

const codecOf = (category: Category): Codec<AnyEvent> => {
  const { types, decode, encode } = aggregates[category].codec
  return { types, decode, encode: encode as Codec<AnyEvent>['encode'] }
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

describe('stored events', () => {
  it('have a folder for each aggregate, and no other', () => {
    const folders = readdirSync(folder, { withFileTypes: true }).filter(entry => entry.isDirectory())
    expect(folders.map(({ name }) => name).toSorted()).to.deep.equal(categories.toSorted())
  })

  it('are never edited and never removed', () => {
    const lines = readFileSync(new URL('SHA256SUMS', folder), 'utf8').trimEnd().split('\n')
    const sums = Object.fromEntries(lines.map(line => line.split('  ').toReversed() as [string, string]))
    const actual = categories
      .flatMap(category => goldensOf(category))
      .map(({ path, text }) => [path, createHash('sha256').update(text).digest('hex')] as const)
    expect(Object.fromEntries(actual), 'SHA256SUMS: add a line for a new file (sha256sum), change none').to.deep.equal(
      sums,
    )
  })

  it('that 1.0.0 cannot read have a vocabulary', () => {
    const ofFirst = readFileSync(new URL('events-of-1.0.0.txt', folder), 'utf8').trimEnd().split('\n')
    const recorded = categories.flatMap(category =>
      goldensOf(category).map(({ type, version }) => `${category}/${type}.v${version}`),
    )
    expect(
      [...new Set(recorded)].toSorted(),
      'Enter the new event in ADDED_EVENTS, streams/addedEvents.ts.',
    ).to.deep.equal([...ofFirst, ...Object.keys(ADDED_EVENTS)].toSorted())
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
      it(`of ${golden.path} are decoded, and encoded to the same bytes`, () => {
        const { type, version, text, path } = golden
        const { event, metadata } = recordedOf(codecOf(category), stored(category, text))
        expect(event.type).to.equal(type)
        expect(metadata.schemaVersion, path).to.equal(version)
        if (version === latestOf(category, golden)) expect(recode(category, text)).to.equal(text)
      })
  }
})
