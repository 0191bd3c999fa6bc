import { Validator } from '@seriousme/openapi-schema-validator'
import { expect } from 'chai'
import { openApiOf } from '../../../src/http/contract/openapi.ts'
import { OLDEST_VERSION, routes } from '../../../src/http/index.ts'
import { VERSIONS } from '../../../src/http/versions/index.ts'
import { type ErrorCode, statusOf } from '../../../src/http/problems/problemCatalogue.ts'
import { SCOPES } from '../../../src/identity/principal.ts'
import { type Client, clientOf } from '../../support/client.ts'
import { checkResponse, resolved } from '../../support/openapiCheck.ts'
import { sharedService } from '../../support/service.ts'

type Reference = { readonly $ref: string }
type Schema = Readonly<Record<string, unknown>>
type Parameter = { readonly name: string; readonly in: string; readonly required?: boolean; readonly schema: Schema }
type Response = { readonly 'x-error-codes'?: readonly string[]; readonly headers?: object; readonly 'x-retry'?: object }
type Operation = {
  readonly operationId: string
  readonly summary: string
  readonly tags: readonly string[]
  readonly security: readonly { readonly oauth?: readonly string[] }[]
  readonly parameters?: readonly (Parameter | Reference)[]
  readonly responses: Readonly<Record<string, Response | Reference>>
}
type Document = {
  readonly openapi: string
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

type Node = Readonly<Record<string, unknown>>

/** The names of the members without a description of their own, of their type, or of an alternative. */
const membersWithout = (document: Node): string[] => {
  const isObject = (value: unknown): value is Node => typeof value === 'object' && value !== null
  const target = ({ $ref }: Node): unknown =>
    typeof $ref === 'string'
      ? $ref
          .slice('#/'.length)
          .split('/')
          .reduce<unknown>((node, name) => isObject(node) && node[name], document)
      : undefined
  const isDescribed = (member: unknown): boolean =>
    isObject(member) &&
    (typeof member['description'] === 'string' ||
      isDescribed(target(member)) ||
      [member['anyOf'], member['oneOf'], member['allOf']].some(
        parts => Array.isArray(parts) && parts.some(isDescribed),
      ))
  const actual: string[] = []
  const visit = (node: unknown, name: string): void => {
    if (!isObject(node) || name === 'example' || name === 'examples') return
    const { properties } = node
    if (isObject(properties) && (node['type'] === 'object' || node['allOf'] !== undefined))
      actual.push(...Object.entries(properties).flatMap(([member, schema]) => (isDescribed(schema) ? [] : [member])))
    for (const [child, value] of Object.entries(node)) visit(value, child)
  }
  visit(document, '')
  return actual
}

describe('openapi.json', () => {
  let client: Client
  let document: Document
  let operations: { path: string; method: string; operation: Operation }[]
  before(async () => {
    client = clientOf((await sharedService()).api)
    const served = await client.get('/openapi.json')
    expect(served.status).to.equal(200)
    expect(served.headers.get('content-type')).to.equal('application/json')
    document = served.body
    operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
    )
  })

  const parametersOf = (id: string, place: string): Parameter[] =>
    (operations.find(({ operation }) => operation.operationId === id)?.operation.parameters ?? [])
      .map(parameter => resolved<Parameter>(parameter))
      .filter(parameter => parameter.in === place)

  it('is a valid, public OpenAPI 3.1 document', async () => {
    expect(document.openapi).to.match(/^3\.1\./)
    const { valid, errors } = await new Validator().validate(structuredClone(document))
    expect(valid, JSON.stringify(errors)).to.equal(true)
    const broken = await new Validator().validate({ ...structuredClone(document), info: {} })
    expect(broken.valid).to.equal(false)
  })

  it('describes every member of every schema, in each version', () => {
    for (const version of VERSIONS) {
      const text = JSON.stringify(openApiOf(routes, version))
      expect(membersWithout(JSON.parse(text)), version).to.deep.equal([])
    }
    const poorer = JSON.parse(JSON.stringify(openApiOf(routes, OLDEST_VERSION)))
    delete poorer.components.schemas.Invoice.properties.due_date.description
    expect(membersWithout(poorer)).to.deep.equal(['due_date'])
  })

  it('has exactly the served routes', () => {
    expect(document.paths).to.deep.equal(JSON.parse(JSON.stringify(openApiOf(routes, OLDEST_VERSION))).paths)
    const declared = routes.map(({ method, path }) => `${method.toLowerCase()} ${path}`)
    expect(operations.map(({ method, path }) => `${method} ${path}`)).to.have.members(declared)
  })

  it('names every operation once, with its scopes', () => {
    const ids = operations.map(({ operation }) => operation.operationId)
    expect(new Set(ids).size).to.equal(ids.length)
    for (const { operation } of operations) {
      expect(operation.operationId).to.match(/^[a-z]+(_[a-z]+)*$/)
      expect(operation.summary).not.to.equal('')
      expect(operation.tags).to.have.lengthOf(1)
      for (const scope of operation.security.flatMap(({ oauth }) => oauth ?? [])) expect(SCOPES).to.include(scope)
    }
    const open = operations.filter(({ operation }) => operation.security.length === 0).map(({ path }) => path)
    for (const path of open)
      expect(path).to.match(
        /^\/($|openapi\.json|livez|readyz|metrics|docs|problems|oauth\/\.well-known|\.well-known|schemas|asyncapi)/,
      )
  })

  it('lists the errors of every operation by status and code', () => {
    for (const { path, method, operation } of operations) {
      const what = `${method} ${path}`
      expect(Object.keys(operation.responses), what).to.include.members(['400', '500'])
      // /livez does not depend on load or dependencies.
      if (path !== '/livez') expect(Object.keys(operation.responses), what).to.include('503')
      if (operation.security.length > 0)
        expect(Object.keys(operation.responses), what).to.include.members(['401', '403'])
      if (path.includes('{id}')) expect(Object.keys(operation.responses), what).to.include('404')
      for (const [status, response] of Object.entries(operation.responses)) {
        const { 'x-error-codes': codes = [], 'x-retry': retry = {}, headers = {} } = resolved<Response>(response)
        if (Number(status) >= 400 && path !== '/readyz') expect(codes, what).not.to.deep.equal([])
        expect(Object.keys(retry), what).to.have.members([...codes])
        for (const code of codes) expect(statusOf(code as ErrorCode), `${what} ${code}`).to.equal(Number(status))
        expect(Object.keys(headers), what).to.include.members(['X-Correlation-ID', 'API-Version'])
      }
    }
  })

  it('names the headers that an operation requires', () => {
    const needs = (id: string): string[] =>
      parametersOf(id, 'header')
        .filter(({ required }) => required)
        .map(({ name }) => name)
    expect(needs('create_payment')).to.deep.equal(['Idempotency-Key'])
    expect(needs('approve_invoice')).to.deep.equal(['If-Match'])
    expect(needs('delete_order')).to.deep.equal(['If-Match'])
    expect(needs('create_order')).to.deep.equal([])
  })
})

describe('openapi.json for generators of clients', () => {
  const document = openApiOf(routes, OLDEST_VERSION)
  type Endpoint = { readonly parameters?: readonly (Parameter | Reference)[] }
  const operations = Object.values(document.paths ?? {}).flatMap(
    methods => Object.values(methods) as (Endpoint & { operationId: string })[],
  )
  const schemasOf = (name: string): Record<string, Schema> =>
    Object.fromEntries(
      operations.flatMap(({ operationId, parameters = [] }) =>
        parameters
          .map(parameter => resolved<Parameter>(parameter))
          .filter(parameter => parameter.name === name)
          .map(({ schema }) => [operationId, schema]),
      ),
    )

  const SIZE_MAX_BYTES = 510_000

  it('refers to components for all headers and errors', () => {
    expect(JSON.stringify(document).length).to.be.lessThan(SIZE_MAX_BYTES)
    for (const methods of Object.values(document.paths ?? {}))
      for (const { responses } of Object.values(methods) as Operation[])
        for (const [status, response] of Object.entries(responses)) {
          if (Number(status) >= 400 && status !== '503') expect(response).to.have.property('$ref')
          if ('headers' in response)
            for (const header of Object.values(response.headers ?? {})) expect(header).to.have.property('$ref')
        }
  })

  it('has no unused component', () => {
    const text = JSON.stringify(document)
    for (const [kind, all] of Object.entries(document.components ?? {}))
      for (const name of kind === 'securitySchemes' ? [] : Object.keys(all))
        expect(text, name).to.include(`"#/components/${kind}/${name}"`)
  })

  it('has no bound of safe integers for the sums of the books, which are exact beyond it', () => {
    const { Balances, TrialBalanceRow } = JSON.parse(JSON.stringify(document.components?.schemas))
    for (const name of ['posted', 'pending', 'available'])
      expect(Balances.properties[name]).to.have.all.keys('type', 'description')
    for (const name of ['debits', 'credits']) {
      expect(TrialBalanceRow.properties[name]).to.have.all.keys('type', 'description', 'minimum')
      expect(TrialBalanceRow.properties[name].minimum).to.equal(0)
    }
  })

  it('has limit as an integer with its minimum, maximum and default, in every list', () => {
    const limits = schemasOf('limit')
    expect(Object.keys(limits)).to.have.length.of.at.least(10)
    for (const [id, schema] of Object.entries(limits))
      expect(schema, id).to.deep.equal({ type: 'integer', minimum: 1, maximum: 100, default: 25 })
  })

  const values: Readonly<Record<string, readonly (readonly [string, boolean])[]>> = {
    'Idempotency-Key': [
      ...(['k', '"k"', 'x'.repeat(255), '"a\\"b"', "it's"].map(key => [key, true]) as [string, boolean][]),
      ...(['', '""', 'a b', '"a', 'a"b', '"a"b"', 'x'.repeat(256), 'é'].map(key => [key, false]) as [
        string,
        boolean,
      ][]),
    ],
    'If-Match': [
      ['"0.2026-11-01"', true],
      ['*', true],
      ['W/"a", "b"', true],
      ['a', false],
      ['', false],
    ],
    'If-None-Match': [
      ['"a"', true],
      ['a', false],
    ],
    'If-Min-Position': [
      ['0', true],
      ['12345', true],
      ['-1', false],
      ['1e3', false],
    ],
    'X-Correlation-ID': [
      ['12345678', true],
      ['1234567', false],
      ['1234 5678', false],
    ],
    traceparent: [
      ['00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', true],
      ['00-00000000000000000000000000000000-00f067aa0ba902b7-01', false],
    ],
  }
  for (const [name, cases] of Object.entries(values))
    it(`has a pattern for the values of ${name}`, () => {
      const schemas = Object.values(schemasOf(name))
      expect(schemas).not.to.deep.equal([])
      for (const { pattern } of schemas)
        for (const [value, isValid] of cases)
          expect(new RegExp(String(pattern), 'u').test(value), `${name}: ${value}`).to.equal(isValid)
    })

  it('names the operations that accept a preference, a range or Last-Event-ID', () => {
    expect(Object.keys(schemasOf('Prefer'))).to.include.members(['create_payment', 'list_orders'])
    expect(Object.keys(schemasOf('Range'))).to.deep.equal(['read_export'])
    expect(Object.keys(schemasOf('If-Range'))).to.deep.equal(['read_export'])
    expect(Object.keys(schemasOf('Last-Event-ID'))).to.deep.equal(['list_events'])
  })

  it('has the limits of metadata, also in a patch', () => {
    const metadataOf = (name: string) => {
      const schema = document.components?.schemas?.[name] as { properties: { metadata: Schema } } | undefined
      return schema?.properties.metadata ?? {}
    }
    const limits = { propertyNames: { type: 'string', minLength: 1, maxLength: 40 } }
    expect(metadataOf('NewOrder')).to.deep.include({
      ...limits,
      maxProperties: 50,
      additionalProperties: { type: 'string', maxLength: 500 },
    })
    const { anyOf = [] } = metadataOf('OrderPatch') as { anyOf?: Schema[] }
    expect(anyOf.map(({ type }) => type)).to.have.members(['object', 'null'])
    expect(anyOf.find(({ type }) => type === 'object')).to.deep.include(limits)
    expect(JSON.stringify(anyOf)).to.include('"maxLength":500')
  })
})

describe('the check of every response against the contract', () => {
  const limits = { 'ratelimit-policy': '"default";q=6000;w=60', ratelimit: '"default";r=5999;t=60' }
  const every = {
    'x-correlation-id': '12345678',
    'api-version': '2026-11-01',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  }
  const problem = {
    type: '/problems/resource_not_found',
    title: 't',
    status: 404,
    detail: 'd',
    instance: '/orders/x',
    code: 'resource_not_found',
    category: 'not_found',
    correlation_id: '12345678',
    retry: { retryable: false, strategy: 'do_not_retry' },
  }
  const missing = {
    method: 'GET',
    path: '/orders/ord_00000000000000000000000000',
    status: 404,
    headers: new Headers({ ...every, 'content-type': 'application/problem+json' }),
    text: '',
    body: problem as unknown,
  }
  const complaintAbout = async (answer: typeof missing): Promise<string> =>
    checkResponse(answer).then(
      () => 'nothing',
      (error: Error) => error.message,
    )

  it('accepts responses as promised', async () => {
    expect(await complaintAbout(missing)).to.equal('nothing')
  })

  for (const [what, changed, complaint] of [
    ['a status that is not declared', { status: 418, body: { ...problem, status: 418 } }, 'not in the contract'],
    [
      'a code that is not declared',
      { body: { ...problem, code: 'cursor_expired', type: '/problems/cursor_expired' } },
      'does not declare the code',
    ],
    ['a code that does not exist', { body: { ...problem, code: 'oops', type: '/problems/oops' } }, 'code'],
    ['a problem without guidance', { body: { ...problem, retry: undefined } }, 'retry'],
    ['a problem with another status than the response', { body: { ...problem, status: 400 } }, 'says 400'],
    [
      'a failure without a problem document',
      { headers: new Headers({ ...every, 'content-type': 'application/json' }) },
      'problem document',
    ],
    [
      'guidance that differs from Retry-After',
      { body: { ...problem, retry: { ...problem.retry, after_seconds: 3 } } },
      'Retry-After',
    ],
    [
      'a response without a correlation id',
      { headers: new Headers({ ...every, 'x-correlation-id': '', 'content-type': 'application/problem+json' }) },
      'lacks the header x-correlation-id',
    ],
    [
      'a response that discloses its software',
      { headers: new Headers({ ...every, 'content-type': 'application/problem+json', 'x-powered-by': 'Express' }) },
      'discloses',
    ],
    [
      'a malformed header',
      { headers: new Headers({ ...every, 'retry-after': 'soon', 'content-type': 'application/problem+json' }) },
      'Retry-After',
    ],
    [
      'a resource that lacks a member',
      {
        status: 200,
        body: { id: 'ord_00000000000000000000000000' },
        headers: new Headers({ ...every, ...limits, 'content-type': 'application/json' }),
      },
      'required property',
    ],
  ] as const)
    it(`rejects ${what}`, async () => {
      expect(await complaintAbout({ ...missing, ...changed })).to.include(complaint)
    })
})
