import { execFile } from 'node:child_process'
import { copyFile, mkdtemp, readFile, rename, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { expect } from 'chai'
import { generateApi } from 'swagger-typescript-api'
import { clientOf, newKey } from '../../support/client.ts'
import { sharedService, type TestService } from '../../support/service.ts'
import { removeFolder } from '../../support/folders.ts'

/**
 * A client generated from openapi.json by swagger-typescript-api: it is the only maintained generator that bundles its
 * TypeScript compiler; the others need a compiler API that TypeScript 7 does not have.
 */

type Run = (
  api: string,
  token: string,
  key: string,
) => Promise<{ orderId: string; paymentId: string; paid: number; listed: string[]; refusal: string | undefined }>

const inRepository = (path: string): string => fileURLToPath(new URL(`../../../${path}`, import.meta.url))

/** The errors of the compiler; empty when there are none. */
const compiled = (directory: string, project: string): Promise<string> =>
  new Promise(resolve => {
    const tsc = [inRepository('node_modules/typescript/bin/tsc'), '-p', join(directory, project)]
    execFile(process.execPath, tsc, (error, stdout, stderr) => resolve(error ? stdout + stderr + error.message : ''))
  })

const LIB = ['ES2025', 'DOM', 'DOM.Iterable']
// Generated code does not pass all compiler checks of this repository, so only the program is checked with all of them.
const CLIENT = {
  compilerOptions: { strict: true, declaration: true, target: 'ES2025', module: 'NodeNext', types: [], lib: LIB },
  files: ['client.ts'],
}
const PROGRAM = {
  extends: inRepository('tsconfig.json'),
  compilerOptions: { noEmit: false, allowImportingTsExtensions: false, types: [], lib: LIB },
  include: ['program.ts'],
}

/**
 * The generator parses the colon of an action as the start of a parameter, as Express does; `/invoices/{id}:approve`
 * has one parameter.
 */
const withoutActions = <P extends { readonly originalRoute: string; readonly pathParams: readonly object[] }>(
  path: P,
) => ({
  ...path,
  route: path.originalRoute.replaceAll(/\{(\w+)\}/g, '$${$1}'),
  pathParams: path.pathParams.filter(param => '$match' in param && String(param.$match).startsWith('{')),
})

describe('a TypeScript client that is generated from openapi.json', function () {
  this.timeout(120_000)
  let service: TestService
  let directory: string
  before(async () => {
    service = await sharedService()
    directory = await mkdtemp(join(tmpdir(), 'ledger-client-'))
    const spec = (await clientOf(service.api).get('/openapi.json')).body
    const { files } = await generateApi({
      spec,
      output: false,
      silent: true,
      httpClientType: 'fetch',
      generateUnionEnums: true,
      generateRouteTypes: true,
      hooks: { onBuildRoutePath: withoutActions },
    })
    const source = files[0]?.fileContent.replace(/^.*@ts-no\w+$/m, '') ?? ''
    await writeFile(join(directory, 'client.ts'), source)
    await writeFile(join(directory, 'package.json'), '{"type":"module"}')
    await writeFile(join(directory, 'client.json'), JSON.stringify(CLIENT))
    await writeFile(join(directory, 'program.json'), JSON.stringify(PROGRAM))
    await copyFile(inRepository('test/support/generatedClient/program.txt'), join(directory, 'program.ts'))
  })
  after(() => removeFolder(directory))

  it('compiles with strict options, and so does a program without casts', async () => {
    expect(await compiled(directory, 'client.json')).to.equal('')
    // From here on only its declarations are visible, as in a published package.
    await rename(join(directory, 'client.ts'), join(directory, 'client.source'))
    expect(await compiled(directory, 'program.json')).to.equal('')
    const program = await readFile(join(directory, 'program.ts'), 'utf8')
    expect(program.replaceAll(/^import .*$/gm, '')).not.to.match(/\bas\b (?!.*\*\/)|\bany\b|!\.|<any>/)
  })

  it('reports a type error in a program', async () => {
    const wrong = `import { Api } from './client.js'
export const wrong = (api: Api<string>) => api.payments.createPayment({ invoice_id: 'inv_', amount: '1', currency: 'USD' })`
    await writeFile(join(directory, 'wrong.ts'), wrong)
    await writeFile(join(directory, 'wrong.json'), JSON.stringify({ ...PROGRAM, include: ['wrong.ts'] }))
    expect(await compiled(directory, 'wrong.json')).to.include(`'string' is not assignable to type 'number'`)
  })

  it('orders, invoices, approves, pays and lists over HTTP', async () => {
    const { run } = (await import(pathToFileURL(join(directory, 'program.js')).href)) as { run: Run }
    const result = await run(service.api, await service.token({ tenant: 'generated-client' }), newKey())
    expect(result).to.include({ paid: 900, refusal: 'payment_exceeds_due' })
    expect(result.listed).to.deep.equal([`${result.paymentId} succeeded`])
  })
})
