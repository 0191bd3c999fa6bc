import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { expect } from 'chai'
import { publishedBy } from '../../projections/facts/projection.ts'
import { topicOf } from '../../projections/factTopics.ts'
import { decode } from '../../src/feeds/decode.ts'
import { factMessageOf } from '../../src/feeds/factMessage.ts'
import { schemaDocuments } from '../../src/http/contract/factSchemas.ts'
import type { FactMessage, Json, JsonObject } from '../../src/ports.ts'
import { type CloudEvent, withSchemaBaseUrl } from '../../streams/facts.ts'
import { categories, goldensOf, stored } from '../golden/goldens.ts'
import { checkMessage, consumersComplaint, eventIn } from '../support/factSchemaCheck.ts'

/**
 * The archive of a consumer: for each type and version a folder with published facts, one for each stored event of
 * test/golden that announces it, and with every schema that was published for it.
 *
 * - <Event>.event.json as GET /events returned it: one line
 * - <Event>.message.json as in Kafka; the value is the text of the message
 * - schema.<n>.json as GET /schemas returned it, from 1 on; a new one for every change of its promises
 *
 * Files are added, never edited, because published facts have been read.
 */

const root = new URL('./', import.meta.url)

const filesIn = (kind: string): string[] => readdirSync(new URL(`${kind}/`, root)).map(name => `${kind}/${name}`)
const kinds = readdirSync(root, { withFileTypes: true })
  .filter(entry => entry.isDirectory())
  .map(({ name }) => name)
const recorded = new Map(kinds.flatMap(filesIn).map(path => [path, readFileSync(new URL(path, root), 'utf8')] as const))
const endingIn = (suffix: string): string[] => [...recorded.keys()].filter(path => path.endsWith(suffix))
const read = (path: string): unknown => JSON.parse(recorded.get(path) ?? 'null')

/** Today's facts of the stored events, as text, by the path that they are recorded at. */
const today: ReadonlyMap<string, string> = new Map(
  categories.flatMap(category =>
    goldensOf(category).flatMap(({ path, text }) => {
      const { recorded } = decode(stored(category, text))
      const announced = publishedBy(category, recorded)
      if (announced === undefined) return []
      const place = announced.dataschema.replace('/schemas/', '').replace(/json$/, '')
      const event = withSchemaBaseUrl(announced, 'https://ledger.example')
      const file = `${place.slice(0, -1)}/${path.slice(path.indexOf('/') + 1, -'.json'.length)}`
      return [
        [`${file}.event.json`, `${JSON.stringify(event)}\n`],
        [`${file}.message.json`, `${JSON.stringify(factMessageOf(topicOf(category), event), null, 2)}\n`],
      ] as const
    }),
  ),
)

const WORDS = new Set(['title', 'description', 'examples'])
/** The promises of a schema, without its descriptions. */
const promises = (node: Json): Json => {
  if (Array.isArray(node)) return node.map(promises)
  if (typeof node !== 'object' || node === null) return node
  const members = Object.entries(node as JsonObject).filter(([name, value]) => !WORDS.has(name) || isNoWord(value))
  return Object.fromEntries(members.map(([name, value]) => [name, promises(value)]))
}
/** A member of the data may be called `description`; its schema is an object. */
const isNoWord = (value: Json): boolean => typeof value === 'object' && !Array.isArray(value)

/** In the order of their publication. */
const schemasOf = (kind: string): JsonObject[] =>
  filesIn(kind)
    .filter(path => /\/schema\.\d+\.json$/.test(path))
    .toSorted((a, b) => Number(a.split('.').at(-2)) - Number(b.split('.').at(-2)))
    .map(path => read(path) as JsonObject)

describe('published facts', () => {
  it('that were recorded are never edited and never removed', () => {
    const lines = readFileSync(new URL('SHA256SUMS', root), 'utf8').trimEnd().split('\n')
    const sums = Object.fromEntries(lines.map(line => line.split('  ').toReversed() as [string, string]))
    const actual = [...recorded].map(([path, text]) => [path, createHash('sha256').update(text).digest('hex')])
    expect(
      Object.fromEntries(actual),
      'SHA256SUMS: add a line for a new file (sha256sum */*), change none',
    ).to.deep.equal(sums)
  })

  for (const [path, text] of today)
    it(`are made today as ${path}, byte for byte`, () => {
      expect(recorded.has(path), `Add test/golden-facts/${path}:\n${text}`).to.equal(true)
      expect(text).to.equal(recorded.get(path))
    })

  for (const path of endingIn('.event.json'))
    it(`as ${path} are accepted by today’s schemas`, () => {
      expect(consumersComplaint(read(path) as CloudEvent)).to.equal(undefined)
    })

  for (const path of endingIn('.message.json'))
    it(`as ${path} are the same in Kafka and over HTTP`, () => {
      const message = read(path) as FactMessage
      checkMessage(message)
      const event = read(path.replace('.message.', '.event.')) as CloudEvent
      expect(eventIn(message)).to.deep.equal(event)
      expect(message.value).to.equal(JSON.stringify(event.data))
    })
})

describe('published schemas', () => {
  it('are recorded for every fact at every version, and for the envelope', () => {
    const published = [...schemaDocuments.keys()].map(path => path.slice('/schemas/'.length, -'.json'.length))
    expect(kinds).to.include.members(published)
  })

  for (const [path, document] of schemaDocuments)
    it(`at ${path} have the promises that were recorded last`, () => {
      const kind = path.slice('/schemas/'.length, -'.json'.length)
      const last = schemasOf(kind).at(-1)
      expect(last !== undefined, `Add test/golden-facts/${kind}/schema.1.json.`).to.equal(true)
      expect(promises(document), `Add test/golden-facts/${kind}/schema.<n>.json.`).to.deep.equal(promises(last ?? null))
    })

  for (const kind of kinds)
    it(`of ${kind}, each that was ever recorded, accept its facts: the oldest consumer still reads the newest`, () => {
      const own = [...recorded.keys(), ...today.keys()].filter(path => path.endsWith('.event.json'))
      const facts = own
        .map(path => JSON.parse(today.get(path) ?? recorded.get(path) ?? '') as CloudEvent)
        .filter(
          event => kind.startsWith('cloudevent.') || new URL(event.dataschema).pathname === `/schemas/${kind}.json`,
        )
      for (const { $id: _, ...schema } of schemasOf(kind)) {
        const ajv = new Ajv2020({ allErrors: true })
        addFormats.default(ajv)
        const accepts = ajv.compile(schema)
        for (const event of facts) {
          accepts(kind.startsWith('cloudevent.') ? event : event.data)
          expect(accepts.errors ?? [], event.type).to.deep.equal([])
        }
      }
    })
})
