import { Validator } from '@seriousme/openapi-schema-validator'
import { expect } from 'chai'
import { openApiOf } from '../../src/http/contract.ts'
import { routes } from '../../src/http/index.ts'
import { PROBLEMS } from '../../src/http/problem.ts'
import { SCOPES } from '../../src/identity/principal.ts'
import { type Client, clientOf } from '../support/client.ts'
import { checkResponse } from '../support/contract.ts'
import { sharedService } from '../support/service.ts'

type Operation = {
  readonly operationId: string
  readonly summary: string
  readonly tags: readonly string[]
  readonly security: readonly { readonly oauth?: readonly string[] }[]
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly required?: boolean }[]
  readonly responses: Readonly<
    Record<string, { readonly 'x-error-codes'?: readonly string[]; readonly headers?: object }>
  >
}
type Document = {
  readonly openapi: string
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

describe('openapi.json', function () {
  this.timeout(30_000)
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

  it('is a valid OpenAPI 3.1 document, for anybody to read', async () => {
    expect(document.openapi).to.match(/^3\.1\./)
    const { valid, errors } = await new Validator().validate(structuredClone(document))
    expect(valid, JSON.stringify(errors)).to.equal(true)
    const broken = await new Validator().validate({ ...structuredClone(document), info: {} })
    expect(broken.valid).to.equal(false)
  })

  it('is made of the routes that are served', () => {
    expect(document.paths).to.deep.equal(JSON.parse(JSON.stringify(openApiOf(routes))).paths)
    const declared = routes.map(({ method, path }) => `${method.toLowerCase()} ${path}`)
    expect(operations.map(({ method, path }) => `${method} ${path}`)).to.have.members(declared)
  })

  it('names every operation once, and whom it is for', () => {
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
        /^\/(openapi\.json|livez|readyz|metrics|docs|problems|oauth\/\.well-known|\.well-known|schemas|asyncapi)/,
      )
  })

  it('says of every operation how it can fail, by status and code', () => {
    for (const { path, method, operation } of operations) {
      const what = `${method} ${path}`
      expect(Object.keys(operation.responses), what).to.include.members(['400', '500'])
      // Whether the process lives has nothing to do with its load or its parts.
      if (path !== '/livez') expect(Object.keys(operation.responses), what).to.include('503')
      if (operation.security.length > 0)
        expect(Object.keys(operation.responses), what).to.include.members(['401', '403'])
      if (path.includes('{id}')) expect(Object.keys(operation.responses), what).to.include('404')
      for (const [status, { 'x-error-codes': codes = [], headers = {} }] of Object.entries(operation.responses)) {
        for (const code of codes)
          expect(PROBLEMS[code as keyof typeof PROBLEMS][0], `${what} ${code}`).to.equal(Number(status))
        expect(Object.keys(headers), what).to.include.members(['X-Correlation-ID', 'API-Version'])
      }
    }
  })

  it('names the headers that an operation needs', () => {
    const needs = (id: string): string[] =>
      (operations.find(({ operation }) => operation.operationId === id)?.operation.parameters ?? [])
        .filter(parameter => parameter.in === 'header' && parameter.required)
        .map(({ name }) => name)
    expect(needs('create_payment')).to.deep.equal(['Idempotency-Key'])
    expect(needs('approve_invoice')).to.deep.equal(['If-Match'])
    expect(needs('delete_order')).to.deep.equal(['If-Match'])
    expect(needs('create_order')).to.deep.equal([])
  })
})

describe('the check of every answer against the contract', () => {
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
  const fails = async (answer: typeof missing): Promise<string> =>
    checkResponse('', answer).then(
      () => 'nothing',
      (error: Error) => error.message,
    )

  it('lets through what was promised', async () => {
    expect(await fails(missing)).to.equal('nothing')
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
    ['a problem that says another status', { body: { ...problem, status: 400 } }, 'says 400'],
    [
      'a failure that is no problem document',
      { headers: new Headers({ ...every, 'content-type': 'application/json' }) },
      'problem document',
    ],
    [
      'guidance that the header does not mirror',
      { body: { ...problem, retry: { ...problem.retry, after_seconds: 3 } } },
      'Retry-After',
    ],
    [
      'an answer without a correlation id',
      { headers: new Headers({ ...every, 'x-correlation-id': '', 'content-type': 'application/problem+json' }) },
      'lacks the header x-correlation-id',
    ],
    [
      'an answer that says what it is made of',
      { headers: new Headers({ ...every, 'content-type': 'application/problem+json', 'x-powered-by': 'Express' }) },
      'made of',
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
    it(`does not let through ${what}`, async () => {
      expect(await fails({ ...missing, ...changed })).to.include(complaint)
    })
})
