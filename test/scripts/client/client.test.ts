import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { generatedTypes } from '../../../scripts/client/generate.ts'
import { API_VERSION, createLedgerClient, LedgerError } from '../../../scripts/client/src/index.ts'
import { type ErrorCode, Problem } from '../../../src/http/problems/problemCatalogue.ts'
import { documentOf } from '../../../src/http/problems/problemDocument.ts'
import { NEWEST_VERSION } from '../../../src/http/index.ts'
import { newKey } from '../../support/client.ts'
import { removeFolder } from '../../support/folders.ts'
import { rejectionOf } from '../../support/rejection.ts'
import { sharedService, type TestService } from '../../support/service.ts'

type Run = (
  api: string,
  token: string,
  key: string,
) => Promise<{ paymentId: string; paid: number; listed: string[]; refusal: string | undefined; words: string }>

type Program = { readonly run: Run; readonly exportOrders: (api: string, token: string) => Promise<string> }

const run = promisify(execFile)

const inRepository = (path: string): string => fileURLToPath(new URL(`../../../${path}`, import.meta.url))

/** The output of the compiler; empty when it finds no error. */
const compiled = (directory: string, project: string): Promise<string> =>
  new Promise(resolve => {
    const args = [inRepository('node_modules/typescript/bin/tsc'), '-p', project]
    execFile(process.execPath, args, { cwd: directory }, (error, stdout, stderr) =>
      resolve(error ? stdout + stderr + error.message : ''),
    )
  })

const PROGRAM = {
  extends: inRepository('tsconfig.json'),
  compilerOptions: {
    noEmit: false,
    allowImportingTsExtensions: false,
    types: ['node'],
    typeRoots: [inRepository('node_modules/@types')],
  },
  exclude: [],
}

const README_BLOCK = /```ts\n(?<code>[^]*?)```/

const problemOf = (code: ErrorCode) =>
  documentOf(new Problem(code), { instance: '/orders/ord_1', correlationId: 'c-1' })

/** A server that answers each request with this. */
const clientThatGets = (status: number, body: string | null, type = 'application/problem+json') => {
  const requests: Request[] = []
  const send: typeof fetch = async (input, init) => {
    requests.push(new Request(input, init))
    return new Response(body, { status, headers: body === null ? {} : { 'content-type': type } })
  }
  const options = { baseUrl: 'http://localhost', token: 'secret', fetch: send, retry: { attemptsMax: 1 } }
  return { ...createLedgerClient(options), requests }
}

describe('the published TypeScript client', () => {
  let service: TestService
  let directory: string
  let user: string
  before(async () => {
    service = await sharedService()
    directory = await mkdtemp(join(tmpdir(), 'ledger-client-'))
    await cp(inRepository('scripts/client'), join(directory, 'scripts/client'), { recursive: true })
    await rm(join(directory, 'scripts/client/dist'), { recursive: true, force: true })
    await cp(inRepository('src/lib/requestedPause.ts'), join(directory, 'src/lib/requestedPause.ts'))
    await cp(inRepository('package.json'), join(directory, 'package.json'))
    await writeFile(join(directory, 'scripts/client/src/generated.ts'), generatedTypes())
    user = join(directory, 'user')
    await mkdir(join(user, 'node_modules/@payment-ledger'), { recursive: true })
  })
  after(() => removeFolder(directory))

  it('compiles with strict options and is packed with every exported file, and no source', async () => {
    const client = join(directory, 'scripts/client')
    expect(await compiled(client, 'tsconfig.json')).to.equal('')
    const { stdout } = await run('npm', ['pack', '--json', '--ignore-scripts'], { cwd: client })
    const [{ files, filename }] = JSON.parse(stdout) as [{ files: { path: string }[]; filename: string }]
    const paths = files.map(({ path }) => path)
    const { exports: entries } = JSON.parse(await readFile(join(client, 'package.json'), 'utf8')) as {
      exports: { '.': Record<string, string> }
    }
    expect(paths).to.include.members(Object.values(entries['.']).map(path => path.replace('./', '')))
    expect(paths.filter(path => !path.startsWith('dist/'))).to.have.members(['package.json', 'README.md'])
    await run('tar', ['-xzf', join(client, filename), '-C', join(user, 'node_modules/@payment-ledger')])
    await rename(join(user, 'node_modules/@payment-ledger/package'), join(user, 'node_modules/@payment-ledger/client'))
  })

  it('gives its types to a program without casts, and to the example of its README', async () => {
    const program = await readFile(inRepository('test/scripts/client/program.txt'), 'utf8')
    expect(program.replaceAll(/^import .*$/gm, '')).not.to.match(/\bas\b (?!const\b)(?!.*\*\/)|\bany\b|!\.|<any>/)
    await writeFile(join(user, 'program.mts'), program)
    const readme = await readFile(inRepository('scripts/client/README.md'), 'utf8')
    const code = README_BLOCK.exec(readme)?.groups?.['code'] ?? expect.fail('The README has no example.')
    await writeFile(join(user, 'readme.mts'), code)
    await writeFile(join(user, 'program.json'), JSON.stringify({ ...PROGRAM, include: ['*.mts'] }))
    expect(await compiled(user, 'program.json')).to.equal('')
  })

  it('reports a type error in a program', async () => {
    const wrong = `import { createLedgerClient } from '@payment-ledger/client'
const { request } = createLedgerClient({ baseUrl: '', token: '' })
export const wrong = () => request('POST /invoices', { body: { order_id: 1 } })`
    await writeFile(join(user, 'wrong.mts'), wrong)
    await writeFile(join(user, 'wrong.json'), JSON.stringify({ ...PROGRAM, include: ['wrong.mts'] }))
    expect(await compiled(user, 'wrong.json')).to.include(`'number' is not assignable to type 'string'`)
  })

  it('pays an order by the example of its README', async () => {
    const readme = await readFile(join(user, 'readme.mjs'), 'utf8')
    expect(readme).to.include('http://localhost:8080')
    await writeFile(join(user, 'here.mjs'), readme.replace('http://localhost:8080', service.api))
    const LEDGER_TOKEN = await service.token({ tenant: 'client-readme' })
    const { stdout } = await run(process.execPath, ['here.mjs'], { cwd: user, env: { LEDGER_TOKEN } })
    expect(stdout).to.equal('succeeded\n')
  })

  it('orders, invoices, approves, pays and lists over HTTP', async () => {
    const { run: pay } = (await import(pathToFileURL(join(user, 'program.mjs')).href)) as Program
    const result = await pay(service.api, await service.token({ tenant: 'generated-client' }), newKey())
    expect(result).to.include({ paid: 900, refusal: 'payment_exceeds_due' })
    expect(result.words).to.match(/^409 payment_exceeds_due: \S/)
    expect(result.listed).to.deep.equal([`${result.paymentId} succeeded`])
  })

  it('leaves the file of an export to the caller', async () => {
    const token = await service.token({ tenant: 'generated-client-files' })
    const { exportOrders } = (await import(pathToFileURL(join(user, 'program.mjs')).href)) as Program
    expect(await exportOrders(service.api, token)).to.match(/^id,/)
  })
})

describe('a request of the client', () => {
  it('has the version of the contract', async () => {
    const { request, requests } = clientThatGets(200, '{}', 'application/json')
    await request('GET /projections')
    expect(API_VERSION).to.equal(NEWEST_VERSION)
    expect(requests[0]?.headers.get('api-version')).to.equal(NEWEST_VERSION)
  })

  it('has its parameters in path, query and headers, and only those that are given', async () => {
    const { request, requests } = clientThatGets(200, '{}', 'application/json')
    const path = { id: 'ord_1' }
    await request('PATCH /orders/{id}', {
      path,
      body: { description: 'tea' },
      ifMatch: '"3"',
      xCorrelationId: undefined,
    })
    await request('GET /orders', { query: { limit: 5, cursor: undefined, created_after: '2026-01-01T00:00:00+01:00' } })
    const [patch, list] = requests
    expect(patch?.headers.get('if-match')).to.equal('"3"')
    expect(patch?.headers.get('content-type')).to.equal('application/merge-patch+json')
    expect(patch?.headers.has('x-correlation-id')).to.equal(false)
    expect(await patch?.json()).to.deep.equal({ description: 'tea' })
    expect(list?.url).to.equal('http://localhost/orders?limit=5&created_after=2026-01-01T00%3A00%3A00%2B01%3A00')
  })

  it('encodes the parameters of paths', async () => {
    const { request, requests } = clientThatGets(200, '{}', 'application/json')
    for (const key of ['order#42', 'a%41', 'a/b?c']) await request('GET /idempotency-keys/{key}', { path: { key } })
    expect(requests.map(({ url }) => new URL(url).pathname)).to.deep.equal([
      '/idempotency-keys/order%2342',
      '/idempotency-keys/a%2541',
      '/idempotency-keys/a%2Fb%3Fc',
    ])
  })

  const deleted = (client: ReturnType<typeof clientThatGets>) =>
    client.request('DELETE /orders/{id}', { path: { id: 'ord_1' }, ifMatch: '"1"' })

  it('rejects with an Error that has the problem, also where a success has no body', async () => {
    for (const code of ['order_has_invoices', 'precondition_failed', 'overloaded'] as const) {
      const problem = problemOf(code)
      const error = await rejectionOf(deleted(clientThatGets(problem.status, JSON.stringify(problem))))
      expect(error).to.be.instanceOf(LedgerError).and.instanceOf(Error)
      expect(error.message).to.equal(`${problem.status} ${code}: ${problem.detail}`)
      expect(error.stack).to.include('LedgerError').and.include(error.message)
      expect(error).to.deep.include({ status: problem.status, problem })
      expect(error).to.include({ code, retryable: code === 'overloaded' })
    }
  })

  it('names each violation in the message of the error', async () => {
    const errors = [{ pointer: '/amount', code: 'required', detail: 'is required' }]
    const problem = { ...problemOf('validation_failed'), detail: 'Not valid.', errors }
    const error = await rejectionOf(deleted(clientThatGets(400, JSON.stringify(problem))))
    expect(error.message).to.equal('400 validation_failed: Not valid. /amount: is required')
  })

  it('has no problem in an error of another server, and no data in a success without a body', async () => {
    const error = await rejectionOf(deleted(clientThatGets(404, '<html>', 'text/html')))
    expect(error).to.be.instanceOf(LedgerError)
    expect(error).to.include({ status: 404, problem: undefined, code: undefined, retryable: false })
    const answer = await deleted(clientThatGets(204, null))
    expect([answer.status, answer.data]).to.deep.equal([204, undefined])
  })

  it('ends with the reason of the caller’s signal, of the request and of the client', async () => {
    const hanging: typeof fetch = (_input, init) =>
      new Promise((_, reject) => init?.signal?.addEventListener('abort', () => reject(new Error('aborted'))))
    const options = { baseUrl: 'http://localhost', token: 'secret', fetch: hanging }
    const reason = new Error('The user left.')
    for (const place of ['request', 'client'] as const) {
      const abort = new AbortController()
      const { signal } = abort
      const client = createLedgerClient(place === 'client' ? { ...options, signal } : options)
      const requested = client.request('POST /orders', {
        body: { currency: 'USD', lines: [] },
        ...(place === 'request' && { signal }),
      })
      abort.abort(reason)
      expect(await rejectionOf(requested)).to.equal(reason)
    }
  })

  it('lists the items of all pages, of one page after the other', async () => {
    const pages = [
      { items: [{ id: 'a' }], page: { next_cursor: '1', has_more: true } },
      { items: [], page: { next_cursor: '2', has_more: true } },
      { items: [{ id: 'b' }], page: { next_cursor: null, has_more: false } },
    ]
    const cursors: (string | null)[] = []
    const send: typeof fetch = async (input, init) => {
      const { searchParams } = new URL(new Request(input, init).url)
      expect(searchParams.get('state')).to.equal('open')
      return Response.json(pages[cursors.push(searchParams.get('cursor')) - 1])
    }
    const { list } = createLedgerClient({ baseUrl: 'http://localhost', token: 'secret', fetch: send })
    const orders = await Array.fromAsync(list('GET /orders', { query: { state: 'open' } }))
    expect(orders.map(({ id }) => id)).to.deep.equal(['a', 'b'])
    expect(cursors).to.deep.equal([null, '1', '2'])
  })
})
