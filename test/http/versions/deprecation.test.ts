import { expect } from 'chai'
import { NEWEST_VERSION, OLDEST_VERSION, VERSIONS } from '../../../src/http/versions/index.ts'
import {
  type Deprecation,
  deprecationHeaders,
  type Release,
  RELEASES,
  type Releases,
  successorOf,
} from '../../../src/http/versions/releases.ts'
import { DAY_MS } from '../../../src/lib/time.ts'
import { resolveVersionWithout } from '../../../src/http/versions/requestedVersion.ts'
import { anOrder, type Client, clientOf, newKey } from '../../support/client.ts'
import { sharedService } from '../../support/service.ts'
import { startVariant, type Variant } from '../../support/serviceVariants.ts'

const NOTICE_MIN_DAYS = 90
const SUPPORT_MIN_MONTHS = 12

const timeOf = (date: string): number => Date.parse(`${date}T00:00:00Z`)

const monthsLater = (date: string, months: number): number => {
  const time = new Date(timeOf(date))
  return time.setUTCMonth(time.getUTCMonth() + months)
}

/** The promises of the contract that the table breaks, in words. */
const brokenPromises = (releases: Releases): string[] =>
  VERSIONS.flatMap(version => {
    const { owner, deprecation }: Release = releases[version]
    const faults = owner.trim() === '' ? [`${version} has no owner`] : []
    if (deprecation === undefined) return faults
    const { date, sunset } = deprecation
    const successor = successorOf(version) ?? version
    if (!(timeOf(sunset) - timeOf(date) >= NOTICE_MIN_DAYS * DAY_MS))
      faults.push(`${version} ends less than ${NOTICE_MIN_DAYS} days after its deprecation`)
    if (!(timeOf(sunset) >= monthsLater(successor, SUPPORT_MIN_MONTHS)))
      faults.push(`${version} ends less than ${SUPPORT_MIN_MONTHS} months after ${successor} replaced it`)
    return faults
  })

/** The table with the oldest version deprecated. */
const deprecating = (deprecation: Deprecation, owner = 'API team'): Releases => ({
  ...RELEASES,
  [OLDEST_VERSION]: { owner, deprecation },
})
const KEPT: Deprecation = { date: '2027-08-01', sunset: '2027-11-22' }

describe('the table of releases', () => {
  it('keeps the promises of the contract', () => {
    expect(brokenPromises(RELEASES)).to.deep.equal([])
    expect(Object.keys(RELEASES)).to.deep.equal([...VERSIONS])
    expect(brokenPromises(deprecating(KEPT))).to.deep.equal([])
  })

  for (const [what, releases, complaint] of [
    ['less than 90 days of notice', deprecating({ date: '2027-08-25', sunset: '2027-11-22' }), '90 days'],
    [
      'a version that ends before it is deprecated',
      deprecating({ date: '2028-02-01', sunset: '2028-01-01' }),
      '90 days',
    ],
    ['less than 12 months of support', deprecating({ date: '2027-01-01', sunset: '2027-11-21' }), '12 months'],
    ['a date that is none', deprecating({ date: '2027-01-01', sunset: 'soon' }), '90 days'],
    ['no owner', deprecating(KEPT, ' '), 'no owner'],
  ] as const)
    it(`is not accepted with ${what}`, () => {
      expect(brokenPromises(releases).join()).to.include(complaint)
    })
})

describe('a deprecated version', () => {
  let variant: Variant
  let client: Client
  before(async () => {
    const resolveVersion = resolveVersionWithout(new Set(), deprecating(KEPT))
    variant = await startVariant(await sharedService(), { resolveVersion })
    client = clientOf(variant.api, 'any')
  })
  after(() => variant.close())

  const announced = (headers: Headers) => ['deprecation', 'sunset', 'link'].map(name => headers.get(name))
  const link =
    `</docs/versions/${NEWEST_VERSION}>; rel="deprecation"; type="text/html", ` +
    `</docs/versions/${NEWEST_VERSION}>; rel="successor-version"; type="text/html"`
  const expected = [`@${Date.parse('2027-08-01') / 1_000}`, 'Mon, 22 Nov 2027 00:00:00 GMT', link]

  it('announces its end in every response, errors and 304 included', async () => {
    const created = await client.post('/orders', anOrder(), { 'idempotency-key': newKey() })
    const path = `/orders/${created.body.id}`
    const etag = created.headers.get('etag') ?? ''
    for (const [status, answer] of [
      [201, created],
      [200, await client.get(path)],
      [200, await client.request('HEAD', path)],
      [304, await client.get(path, { 'if-none-match': etag })],
      [412, await client.request('DELETE', path, { headers: { 'if-match': '"0"' } })],
      [428, await client.request('DELETE', path)],
      [204, await client.request('DELETE', path, { headers: { 'if-match': etag } })],
      [404, await client.get(path)],
      [404, await client.get('/nowhere')],
      [405, await client.request('DELETE', '/orders')],
      [400, await client.get('/orders?limit=0')],
      [400, await client.request('POST', '/orders', { raw: '{' })],
      [200, await client.get('/openapi.json')],
    ] as const) {
      expect(answer.status).to.equal(status)
      expect(announced(answer.headers), `${status}`).to.deep.equal(expected)
    }
    const events = await fetch(`${variant.api}/events`, { headers: { accept: 'text/event-stream' } })
    expect(announced(events.headers), 'server-sent events').to.deep.equal(expected)
    await events.body?.cancel()
  })

  it('keeps the link to the next page', async () => {
    await client.post('/orders', anOrder())
    const position = (await client.post('/orders', anOrder())).headers.get('ledger-position') ?? ''
    const reached = { 'if-min-position': position, prefer: 'wait=5' }
    const links = (await client.get('/orders?limit=1', reached)).headers.get('link')
    expect(links)
      .to.match(/^<\/orders\?limit=1&cursor=[\w-]+>; rel="next", /)
      .and.to.include(link)
  })

  it('announces nothing in the responses of its successor', async () => {
    const { headers } = await client.get('/orders?limit=1', { 'api-version': NEWEST_VERSION })
    expect([headers.get('deprecation'), headers.get('sunset')]).to.deep.equal([null, null])
    expect(deprecationHeaders(NEWEST_VERSION)).to.equal(undefined)
  })

  it('links to a page that is there, with the changes and the end', async () => {
    const page = await client.get(`/docs/versions/${NEWEST_VERSION}`)
    expect(page.headers.get('content-security-policy')).to.include("default-src 'none'")
    for (const text of [
      'amount_outstanding',
      'remaining',
      `The end of ${OLDEST_VERSION}`,
      RELEASES[OLDEST_VERSION].owner,
    ])
      expect(page.text).to.include(text)
    expect((await client.get(`/docs/versions/${OLDEST_VERSION}`)).status).to.equal(404)
  })
})
