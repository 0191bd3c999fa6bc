import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { expect } from 'chai'
import { VERSIONS } from '../../../src/http/index.ts'
import { clientOf } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { sharedService, type TestService } from '../../support/service.ts'
import type { Exchange, RecordedResponse } from './exchange.ts'
import { programs } from './programs.ts'
import { type Bindings, type Observed, requestWith, responseDifferences } from './replaying.ts'

const read = (version: string, name: string): readonly Exchange[] =>
  JSON.parse(readFileSync(new URL(`./${version}/${name}.json`, import.meta.url), 'utf8')) as Exchange[]

const recordedVersions = readdirSync(new URL('./', import.meta.url)).filter(name => /^\d{4}-\d\d-\d\d$/.test(name))

/** The clients of one run: the caller of the tenant, and one without its token. */
const clientsOf = async (service: TestService, tenant: string) => ({
  own: clientOf(service.api, await service.token({ tenant })),
  anonymous: clientOf(service.api),
})
type Clients = Awaited<ReturnType<typeof clientsOf>>

const replay = async ({ own, anonymous }: Clients, exchange: Exchange, bindings: Bindings): Promise<void> => {
  const { method, path, headers, body } = requestWith(exchange, bindings)
  const { authorization, ...sent } = headers
  const ask = () =>
    (authorization === undefined ? own : anonymous).request(method, path, {
      headers: authorization ? { ...sent, authorization } : sent,
      ...(body === undefined ? {} : { body }),
    })
  const { eventually: isAwaited } = exchange.request
  // A wrong guess must not bind tokens.
  const isAsRecorded = (answer: Observed) =>
    responseDifferences(exchange.response, answer, new Map(bindings)).length === 0
  let last: Observed = await ask()
  if (isAwaited) await eventually(async () => isAsRecorded(last) || !(last = await ask())).catch(() => undefined)
  expect(responseDifferences(exchange.response, last, bindings), `${method} ${path}`).to.deep.equal([])
}

describe('the recorded clients of every supported version', () => {
  let service: TestService
  before(async () => {
    service = await sharedService()
  })

  it('are recorded for every version', () => {
    for (const version of VERSIONS) expect(recordedVersions, `record ${version}`).to.include(version)
  })

  for (const version of recordedVersions.filter(each => VERSIONS.some(served => served === each)))
    for (const name of Object.keys(programs))
      it(`of ${version}, ${name}: get the recorded responses from this code`, async () => {
        const tenant = `replayed-${randomUUID().slice(0, 8)}`
        const bindings: Bindings = new Map([
          ['{{tenant}}', tenant],
          ['{{host}}', service.api],
        ])
        const clients = await clientsOf(service, tenant)
        for (const exchange of read(version, name)) await replay(clients, exchange, bindings)
      })
})

describe('the comparison with a recorded response', () => {
  const recorded: RecordedResponse = {
    status: 200,
    headers: { location: '/orders/{{ord_1}}' },
    body: { id: '{{ord_1}}', at: '{{time}}', lines: [{ sku: 'tea' }], total: 900, note: null, detail: 'Paid.' },
  }
  const id = 'ord_01JB3N8Q6Z4T1V7W9XAC2E5GHK'
  const another = 'ord_01JB3N8Q6Z4T1V7W9XAC2E5GHJ'
  const at = '2026-11-12T16:05:41.007Z'
  const body = { id, at, lines: [{ sku: 'tea' }], total: 900, note: null, detail: 'Paid.' }
  const observed = { status: 200, headers: new Headers({ location: `/orders/${id}` }), body }
  const of = (changed: Partial<Observed>) => responseDifferences(recorded, { ...observed, ...changed }, new Map())

  it('passes an equal response, and one with more members and headers', () => {
    expect(of({})).to.deep.equal([])
    expect(of({ body: { ...body, colour: 'red', lines: [{ sku: 'tea', size: 1 }] } })).to.deep.equal([])
  })

  it('passes other words for people', () => {
    expect(of({ body: { ...body, detail: 'It is paid.' } })).to.deep.equal([])
  })

  for (const [difference, changed, sentence] of [
    ['another status', { status: 201 }, 'the status was 200 and is 201'],
    ['a missing member', { body: { ...body, total: undefined, ...{ note: null } } }, '/total was 900'],
    ['a removed member', { body: { id, at, lines: body.lines, note: null } }, '/total is missing'],
    ['another value', { body: { ...body, total: 901 } }, '/total was 900 and is 901'],
    ['another type', { body: { ...body, total: '900' } }, '/total was 900 and is "900"'],
    ['null in place of a value', { body: { ...body, lines: null } }, '/lines was'],
    ['a detail without words', { body: { ...body, detail: '' } }, '/detail was'],
    ['a longer list', { body: { ...body, lines: [...body.lines, { sku: 'milk' }] } }, '/lines was'],
    ['an id of another form', { body: { ...body, id: '17' } }, '/id was'],
    ['an id that is not the one of the header', { body: { ...body, id: another } }, '/id was'],
    ['a time of another form', { body: { ...body, at: 'yesterday' } }, '/at was'],
    ['a missing header', { headers: new Headers() }, 'the header location is missing'],
  ] as const)
    it(`reports ${difference}`, () => {
      expect(of(changed).join()).to.include(sentence)
    })
})
