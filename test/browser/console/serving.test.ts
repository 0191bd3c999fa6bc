import { createHash } from 'node:crypto'
import { expect } from 'chai'
import { clientOf } from '../../support/client.ts'
import { sharedService } from '../../support/service.ts'

/** How the files of the console are served, without a browser. */

const PRELOADED = /<link rel="modulepreload" href="([^"]+)">/g
const STYLES = /<link rel="stylesheet" href="([^"]+)">/g

describe('serving the console', () => {
  let api: string
  let html: string
  let policy: string
  before(async () => {
    ;({ api } = await sharedService())
    const page = await fetch(`${api}/console`)
    html = await page.text()
    policy = page.headers.get('content-security-policy') ?? ''
  })

  const pathsOf = (pattern: RegExp): string[] => [...html.matchAll(pattern)].map(([, path = '']) => path)
  const mainOf = (): string => /<script type="module" src="([^"]+)">/.exec(html)?.[1] ?? ''

  it('permits scripts of this origin and the import map by its hash, and no markup from strings', () => {
    const [, importMap = ''] = /<script type="importmap">(.*?)<\/script>/.exec(html) ?? []
    const hash = createHash('sha256').update(importMap).digest('base64')
    expect(policy.split('; ')).to.include.members([
      "default-src 'none'",
      `script-src 'self' 'sha256-${hash}'`,
      "style-src 'self'",
      `connect-src 'self' ${api}`,
      "require-trusted-types-for 'script'",
      'trusted-types lit-html',
    ])
    expect(policy).not.to.include('unsafe')
    expect(html).not.to.match(/ style=| on\w+=|<style/)
  })

  it('has the same page at every path below it that is no file', async () => {
    const below = await fetch(`${api}/console/case/inv_1`)
    expect([below.status, await below.text()]).to.deep.equal([200, html])
    expect((await fetch(`${api}/console/${'x'.repeat(16)}/app/main.ts`)).status).to.equal(404)
    expect((await fetch(`${api}/consoles`)).status).to.equal(404)
    const refused = await fetch(`${api}/console`, { method: 'POST' })
    expect([refused.status, refused.headers.get('allow')]).to.deep.equal([405, 'GET, HEAD'])
    expect(refused.headers.get('content-type')).to.equal('application/problem+json')
  })

  it('serves modules without types, for ever, in Brotli where it is accepted', async () => {
    const plain = await fetch(api + mainOf(), { headers: { 'accept-encoding': 'identity' } })
    const text = await plain.text()
    expect(plain.headers.get('content-type')).to.equal('text/javascript; charset=utf-8')
    expect(plain.headers.get('cache-control')).to.equal('public, max-age=31536000, immutable')
    expect(plain.headers.get('x-content-type-options')).to.equal('nosniff')
    const session = pathsOf(PRELOADED).find(path => path.endsWith('/session.ts')) ?? ''
    expect(await (await fetch(api + session)).text()).not.to.include('type Tokens')
    expect(text).to.include("import './shell.ts'")
    const coded = await fetch(api + mainOf(), { headers: { 'accept-encoding': 'br' } })
    expect(coded.headers.get('content-encoding')).to.equal('br')
    expect(await coded.text()).to.equal(text)
  })

  it('answers 304 to the entity tag of the page', async () => {
    const etag = (await fetch(`${api}/console`)).headers.get('etag') ?? ''
    const again = await fetch(`${api}/console`, { headers: { 'if-none-match': etag } })
    expect([again.status, again.headers.get('cache-control')]).to.deep.equal([304, 'no-cache'])
    expect((await fetch(`${api}/console`, { headers: { 'if-none-match': '"other"' } })).status).to.equal(200)
  })

  const BUDGET_BYTES = 100_000

  it('needs at most 100 kB for the first page', async () => {
    const paths = [mainOf(), ...pathsOf(PRELOADED), ...pathsOf(STYLES)]
    const sizes = await Promise.all(
      paths.map(async path => {
        const { headers } = await fetch(api + path, { method: 'HEAD', headers: { 'accept-encoding': 'br' } })
        expect([path, headers.get('content-encoding')]).to.deep.equal([path, 'br'])
        return Number(headers.get('content-length'))
      }),
    )
    const bytes = sizes.reduce((sum, size) => sum + size, 0)
    expect(bytes).to.be.above(20_000).and.below(BUDGET_BYTES)
    process.stdout.write(
      `      The modules and styles of the first page: ${bytes} bytes in Brotli, ${paths.length} files.\n`,
    )
  })
})

describe('GET /', () => {
  it('has the links as JSON, and a page for browsers', async () => {
    const service = await sharedService()
    const client = clientOf(service.api)
    const links = await client.get('/')
    expect(links.headers.get('content-type')).to.equal('application/json')
    expect(links.body.links).to.include({ console: '/console', docs: '/docs', ready: '/readyz' })
    for (const path of Object.values<string>(links.body.links))
      expect((await fetch(service.api + path)).status, path).to.equal(200)
    const page = await client.get('/', { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' })
    expect(page.headers.get('content-type')).to.equal('text/html; charset=utf-8')
    for (const path of ['/console', '/docs', '/readyz']) expect(page.text).to.include(`href="${path}"`)
    expect(page.headers.get('vary')).to.include('Accept')
  })
})
