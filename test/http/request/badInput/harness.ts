import { expect } from 'chai'
import { openEventStore } from '../../../../src/adapters/eventstoredb/eventStore.ts'
import { isErrorCode } from '../../../../src/http/response/problemCatalogue.ts'
import type { EventStore } from '../../../../src/ports.ts'
import { type Answer, type Client, clientOf, isOverloaded, patiently } from '../../../support/client.ts'
import { quietHead, sharedService, type TestService, writtenSince } from '../../../support/service.ts'
import { send, type Wire } from '../../../support/rawHttp.ts'

/**
 * The harness of sets of bad input. A set is a table: each row has a request and the expected refusal. After the whole set the
 * log has no new event, and the watched resources are unchanged.
 */

export type Refused<I> = readonly [name: string, input: I, status: number, code: string, pointer?: string | undefined]
/** Unusual but valid inputs. The response has at least the given members. */
export type Taken<I, P> = readonly [name: string, input: I, status: number, says?: (on: P) => object]

export type BadRequest = Omit<Wire, 'method'> & { readonly method?: string }

/** The resources that the requests refer to. */
export type Watched = {
  /** Paths whose representation must be the same before and after the set. */
  readonly watched?: readonly string[]
}

export type BadInput<I, P extends Watched> = {
  readonly set: string
  /** The number of refused cases that the set must have. */
  readonly least: number
  /** Created before the position of the store is taken. */
  readonly prepare: (client: Client, service: TestService) => Promise<P>
  readonly request: (input: I, on: P) => BadRequest
  readonly refused: readonly Refused<I>[]
  readonly taken?: readonly Taken<I, P>[]
}

/** Inputs with the same expected refusal, by name. */
export const refusedAs = <I>(
  [status, code, pointer]: readonly [number, string, string?],
  inputs: Readonly<Record<string, I>>,
): Refused<I>[] => Object.entries(inputs).map(([name, input]) => [name, input, status, code, pointer])

/** Inputs whose text is also their name. */
export const plain = (inputs: readonly string[], where = ''): Record<string, string> =>
  Object.fromEntries(inputs.map(input => [`${where}${JSON.stringify(input)}`, input]))

export const JSON_TYPE = ['Content-Type', 'application/json'] as const
export const ANY_VERSION = ['If-Match', '*'] as const
export const SUFFIX = '0123456789ABCDEFGHJKMNPQRS'

/** Far above the duration of any of these requests, also on a loaded machine. */
const ANSWER_MAX_MS = 8_000
const OUR_INSIDE = /\.ts:\d|node:internal|\bat \S+ \(|\b(?:Type|Range|Syntax|Zod)Error\b/

/** Sends the request and expects the response within the time limit. */
export const askInTime = async (api: string, wire: Wire): Promise<Answer> => {
  const ask = async () => {
    const from = performance.now()
    const answer = await send(api, wire)
    return { ...answer, tookMs: performance.now() - from }
  }
  const { tookMs, ...answer } = await patiently(ask, isOverloaded)
  expect(tookMs, 'milliseconds').to.be.lessThan(ANSWER_MAX_MS)
  return answer
}

const checkRefusal = ({ status, headers, body, text }: Answer, expected: Refused<unknown>): void => {
  const [, , , , pointer] = expected
  expect([status, body?.code], text).to.deep.equal(expected.slice(2, 4))
  expect(headers.get('content-type')).to.equal('application/problem+json')
  expect(isErrorCode(body.code)).to.equal(true)
  expect(body.correlation_id).to.equal(headers.get('x-correlation-id'))
  expect(body.correlation_id).to.match(/^[A-Za-z0-9._-]{8,128}$/)
  expect(body.retry.retryable).to.equal(false)
  expect(text).not.to.match(OUR_INSIDE)
  if (pointer !== undefined)
    expect(body.errors.map((violation: { pointer: string }) => violation.pointer)).to.include(pointer)
}

/** The service runs in this process, so that changes of prototypes are visible here. */
const prototypes = (): unknown =>
  [Object, Array, Function, String, Number, Map].map(({ prototype }) => Reflect.ownKeys(prototype).map(String))

export const badInput = <I, P extends Watched>(declared: BadInput<I, P>): void => {
  const { set, least, prepare, request, refused, taken = [] } = declared
  describe(`bad input: ${set}`, function () {
    this.timeout(60_000)
    let service: TestService
    let client: Client
    let token: string
    let store: EventStore
    let on: P
    let head: bigint
    let shown: string[]
    let untouched: unknown
    const tenant = `bad-input-${set.toLowerCase().replaceAll(' ', '-')}`

    const watched = async (): Promise<string[]> =>
      Promise.all((on.watched ?? []).map(async path => (await client.get(path)).text))
    const ask = (input: I): Promise<Answer> => {
      const { method = 'GET', headers, ...rest } = request(input, on)
      return askInTime(service.api, { method, ...rest, headers: [['Authorization', `Bearer ${token}`], ...headers] })
    }

    before(async () => {
      // Libraries that other test files load extend String.prototype, so that it is recorded after all are loaded.
      untouched = prototypes()
      service = await sharedService()
      token = await service.token({ tenant })
      client = clientOf(service.api, token)
      store = openEventStore({ connectionString: service.addresses.event_store })
      on = await prepare(client, service)
      head = await quietHead(store)
      shown = await watched()
    })
    after(() => store.close())

    it(`has ${least} distinct cases or more`, () => {
      expect(refused.length).to.be.at.least(least)
      const names = [...refused, ...taken].map(([name]) => name)
      expect(names.filter((name, index) => names.indexOf(name) !== index)).to.deep.equal([])
    })
    for (const expected of refused)
      it(`${expected[2]} ${expected[3]}: ${expected[0]}`, async () => checkRefusal(await ask(expected[1]), expected))
    it('leaves no trace: no new event, no changed resource, no polluted object', async () => {
      // Only events of this tenant count, since other suites share the service.
      expect(await writtenSince(store, head, tenant)).to.deep.equal([])
      expect(await watched()).to.deep.equal(shown)
      expect(prototypes()).to.deep.equal(untouched)
      expect(Reflect.get({}, 'polluted')).to.equal(undefined)
      const after = await client.get('/orders?limit=1')
      expect([after.status, after.text.includes('polluted')]).to.deep.equal([200, false])
    })
    for (const [name, input, status, says] of taken)
      it(`${status}: ${name}`, async () => {
        const answer = await ask(input)
        expect(answer.status, answer.text).to.equal(status)
        if (says) expect(answer.body).to.deep.include(says(on))
      })
  })
}
