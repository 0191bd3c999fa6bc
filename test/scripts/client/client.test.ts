import { execFile } from 'node:child_process'
import { copyFile, cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { outdatedFiles } from '../../../scripts/client/generate.ts'
import { removeFolder } from '../../support/folders.ts'
import { newKey } from '../../support/client.ts'
import { sharedService, type TestService } from '../../support/service.ts'

type Run = (
  api: string,
  token: string,
  key: string,
) => Promise<{ orderId: string; paymentId: string; paid: number; listed: string[]; refusal: string | undefined }>

type Program = { readonly run: Run; readonly exportOrders: (api: string, token: string) => Promise<string> }

type Failure = Response & { readonly error: unknown }
/** Some endpoints of the compiled client. */
type Endpoints = {
  readonly idempotencyKeys: { readonly readIdempotencyKey: (key: string) => Promise<unknown> }
  readonly orders: { readonly deleteOrder: (id: string) => Promise<Failure> }
  readonly exports: { readonly readExport: (id: string) => Promise<Failure> }
}
type Compiled = {
  readonly createLedgerClient: (options: {
    readonly baseUrl: string
    readonly token: () => string
    readonly fetch: typeof fetch
  }) => Endpoints
}

const inRepository = (path: string): string => fileURLToPath(new URL(`../../../${path}`, import.meta.url))

/** The output of a program that failed; empty when it succeeded. */
const failureOf = (program: string, args: readonly string[], cwd: string): Promise<string> =>
  new Promise(resolve => {
    execFile(program, args, { cwd }, (error, stdout, stderr) => resolve(error ? stdout + stderr + error.message : ''))
  })

const compiled = (directory: string, project: string): Promise<string> =>
  failureOf(process.execPath, [inRepository('node_modules/typescript/bin/tsc'), '-p', project], directory)

const LIB = ['ES2025', 'DOM', 'DOM.Iterable']
const PROGRAM = {
  extends: inRepository('tsconfig.json'),
  compilerOptions: { noEmit: false, allowImportingTsExtensions: false, types: [], lib: LIB },
  include: ['program.ts'],
  exclude: [],
}

describe('the published TypeScript client', () => {
  let service: TestService
  let directory: string
  before(async () => {
    service = await sharedService()
    directory = await mkdtemp(join(tmpdir(), 'ledger-client-'))
    await cp(inRepository('scripts/client'), directory, { recursive: true })
    await rm(join(directory, 'dist'), { recursive: true, force: true })
    await writeFile(join(directory, 'program.json'), JSON.stringify(PROGRAM))
    await copyFile(inRepository('test/scripts/client/program.txt'), join(directory, 'program.ts'))
  })
  after(() => removeFolder(directory))

  it('is generated from the contract as it is now', async () => {
    expect(await outdatedFiles(), 'Run npm run client.').to.deep.equal([])
  })

  it('compiles with strict options, and so does a program without casts that sees only its declarations', async () => {
    expect(await compiled(directory, 'tsconfig.json')).to.equal('')
    await rm(join(directory, 'src'), { recursive: true })
    expect(await compiled(directory, 'program.json')).to.equal('')
    const program = await readFile(join(directory, 'program.ts'), 'utf8')
    expect(program.replaceAll(/^import .*$/gm, '')).not.to.match(/\bas\b (?!.*\*\/)|\bany\b|!\.|<any>/)
  })

  it('reports a type error in a program', async () => {
    const wrong = `import { createLedgerClient } from './dist/index.js'
const ledger = createLedgerClient({ baseUrl: '', token: () => '' })
export const wrong = () => ledger.payments.createPayment({ invoice_id: 'inv_', amount: '1', currency: 'USD' })`
    await writeFile(join(directory, 'wrong.ts'), wrong)
    await writeFile(join(directory, 'wrong.json'), JSON.stringify({ ...PROGRAM, include: ['wrong.ts'] }))
    expect(await compiled(directory, 'wrong.json')).to.include(`'string' is not assignable to type 'number'`)
  })

  it('orders, invoices, approves, pays and lists over HTTP', async () => {
    const { run } = (await import(pathToFileURL(join(directory, 'program.js')).href)) as Program
    const result = await run(service.api, await service.token({ tenant: 'generated-client' }), newKey())
    expect(result).to.include({ paid: 900, refusal: 'payment_exceeds_due' })
    expect(result.listed).to.deep.equal([`${result.paymentId} succeeded`])
  })

  it('leaves the file of an export to the caller', async () => {
    const token = await service.token({ tenant: 'generated-client-files' })
    const { exportOrders } = (await import(pathToFileURL(join(directory, 'program.js')).href)) as Program
    expect(await exportOrders(service.api, token)).to.match(/^id,/)
  })

  /** A client whose requests all get this response. */
  const clientThatGets = async (status: number, body: string | null, type = 'application/problem+json') => {
    const { createLedgerClient } = (await import(pathToFileURL(join(directory, 'dist/index.js')).href)) as Compiled
    const paths: string[] = []
    const send: typeof fetch = async input => {
      paths.push(new URL(input instanceof Request ? input.url : input).pathname)
      return new Response(body, { status, headers: { 'content-type': type } })
    }
    return { client: createLedgerClient({ baseUrl: 'http://localhost', token: () => 'token', fetch: send }), paths }
  }
  const failureOfRequest = async (request: Promise<Failure>): Promise<Failure> =>
    request.then(
      ({ status }) => expect.fail(`The request was answered ${status}.`),
      (failure: Failure) => failure,
    )

  it('encodes the parameters of paths', async () => {
    const { client, paths } = await clientThatGets(200, '{}', 'application/json')
    for (const key of ['order#42', 'a%41', 'a/b?c']) await client.idempotencyKeys.readIdempotencyKey(key)
    expect(paths).to.deep.equal([
      '/idempotency-keys/order%2342',
      '/idempotency-keys/a%2541',
      '/idempotency-keys/a%2Fb%3Fc',
    ])
  })

  it('reads the problem of a failure where a success has no JSON body', async () => {
    for (const [status, code] of [
      [409, 'order_has_invoices'],
      [412, 'precondition_failed'],
      [428, 'precondition_required'],
    ] as const) {
      const { client } = await clientThatGets(status, JSON.stringify({ code }))
      const failure = await failureOfRequest(client.orders.deleteOrder('ord_1'))
      expect(failure.error).to.deep.equal({ code })
      expect(await failure.json()).to.deep.equal({ code })
    }
    const { client } = await clientThatGets(410, '{"code":"export_expired"}')
    expect((await failureOfRequest(client.exports.readExport('op_1'))).error).to.deep.equal({ code: 'export_expired' })
  })

  it('has no problem for a success without a body, or from another server', async () => {
    const deleted = await (await clientThatGets(204, null)).client.orders.deleteOrder('ord_1')
    expect(deleted.error).to.equal(null)
    const { client } = await clientThatGets(502, '<html>', 'text/html')
    expect((await failureOfRequest(client.orders.deleteOrder('ord_1'))).error).to.equal(null)
  })

  it('can be packed: every exported file is in the package, and no source', async () => {
    const args = ['pack', '--dry-run', '--json', '--ignore-scripts']
    const { stdout: packed } = await promisify(execFile)('npm', args, { cwd: directory })
    const [{ files }] = JSON.parse(packed) as [{ files: { path: string }[] }]
    const paths = files.map(({ path }) => path)
    expect(paths).to.include.members(['package.json', 'README.md', 'dist/index.js', 'dist/index.d.ts', 'dist/retry.js'])
    expect(paths.filter(path => path.startsWith('src') || path.includes('program'))).to.deep.equal([])
    const { exports: entries } = JSON.parse(await readFile(join(directory, 'package.json'), 'utf8')) as {
      exports: { '.': Record<string, string> }
    }
    for (const path of Object.values(entries['.'])) expect(paths).to.include(path.replace('./', ''))
  })
})
