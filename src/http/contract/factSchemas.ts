import { z } from 'zod'
import { cloudEventSchema, type FactKind, kindsIn, schemaPathOf, SOURCE } from '../../../streams/facts.ts'
import { aggregates } from '../../../streams/index.ts'
import type { JsonObject } from '../../ports.ts'
import { Problem } from '../problems/problemCatalogue.ts'
import { type AnyRoute, route } from '../route.ts'

/** The documents that `dataschema` links to: JSON Schema 2020-12 of each version of each fact, and of the envelope. */

export const factKinds: readonly FactKind[] = Object.values(aggregates).flatMap(({ facts }) => kindsIn(facts))

export const ENVELOPE_PATH = '/schemas/cloudevent.v1.json'
/** application/json too, since not every tool asks for application/schema+json. */
const OFFERS = ['application/schema+json', 'application/json']

type Titled = { readonly title: string; readonly description: string; readonly examples: readonly object[] }

/** The JSON Schema with additional members permitted, so a later one does not break a consumer. */
const jsonSchemaOf = (path: string, schema: z.ZodType, { title, description, examples }: Titled): JsonObject => {
  const { $schema, ...body } = z.toJSONSchema(schema, {
    io: 'input',
    override: ({ jsonSchema }) => {
      if (jsonSchema.type === 'object') jsonSchema.additionalProperties ??= true
      // The format says the same as the pattern, and member names are always strings.
      if (jsonSchema.format !== undefined) delete jsonSchema.pattern
      delete jsonSchema.propertyNames
    },
  })
  return JSON.parse(JSON.stringify({ $schema, $id: path, title, description, ...body, examples })) as JsonObject
}

const CORRELATION = '3f0c6f1e-7f0e-4a35-9d57-9f2a1d8c4b60'

/** The example of a kind as GET /events would show it. The first member of the example is the id of its subject. */
const exampleEventOf = (kind: FactKind): JsonObject => {
  const [subject = ''] = Object.values(kind.example)
  return {
    specversion: '1.0',
    id: '0e9d2a44-5b1c-8f7e-a3d6-6c1b7e2f9a05',
    source: SOURCE,
    type: kind.type,
    subject,
    time: '2026-11-12T16:05:41.007Z',
    datacontenttype: 'application/json',
    dataschema: `https://ledger.example${schemaPathOf(kind)}`,
    partitionkey: subject,
    sequence: '00000000000000000004',
    position: '7731904',
    correlationid: CORRELATION,
    causationid: CORRELATION,
    tenantid: 'acme',
    data: kind.example,
  }
}

const envelope = jsonSchemaOf(ENVELOPE_PATH, cloudEventSchema, {
  title: 'A published fact as a CloudEvent',
  description: 'CloudEvents 1.0 in its JSON form, as GET /events serves it. In Kafka the attributes are headers.',
  examples: factKinds.slice(0, 1).map(exampleEventOf),
})

export const schemaDocuments: ReadonlyMap<string, JsonObject> = new Map([
  [ENVELOPE_PATH, envelope],
  ...factKinds.map(kind => {
    const { title, description, example } = kind
    const path = schemaPathOf(kind)
    return [path, jsonSchemaOf(path, kind.schema, { title, description, examples: [example] })] as const
  }),
])

const names = [...schemaDocuments.keys()].map(path => path.slice('/schemas/'.length))
const isName = (text: string): boolean => schemaDocuments.has(`/schemas/${text}`)

const common = { method: 'GET', tag: 'Contract', scope: 'none' } as const
// For an hour only, since a schema version may still gain members.
const headers = { 'Cache-Control': 'public, max-age=3600' }

const readSchema = route({
  ...common,
  path: '/schemas/{name}',
  operationId: 'read_schema',
  summary: 'Read the schema of a fact’s data, which its dataschema links to',
  offers: OFFERS,
  params: z.object({ name: z.string().refine(isName).meta({ examples: names }) }),
  responses: {
    200: {
      description: 'A JSON Schema, draft 2020-12.',
      schema: z.record(z.string(), z.unknown()),
      contentType: OFFERS,
    },
  },
  handler: async ({ params: { name }, accept }) => {
    const body = schemaDocuments.get(`/schemas/${name}`)
    if (body === undefined) throw new Problem('resource_not_found')
    return { status: 200, body, headers, contentType: accept }
  },
})

const indexSchema = z.object({
  items: z.array(z.object({ name: z.string(), href: z.string(), title: z.string() })),
})

const listSchemas = route({
  ...common,
  path: '/schemas',
  operationId: 'list_schemas',
  summary: 'List the schemas of the published facts',
  responses: { 200: { description: 'All schemas.', schema: indexSchema } },
  handler: async () => ({
    status: 200,
    body: {
      items: names.map(name => {
        const href = `/schemas/${name}`
        return { name, href, title: schemaDocuments.get(href)?.['title'] ?? '' }
      }),
    },
    headers,
  }),
})

export const factSchemaRoutes: readonly AnyRoute[] = [listSchemas, readSchema]
