import { expect } from 'chai'
import { openEventStore } from '../../../../src/adapters/eventstoredb/eventStore.ts'
import { isErrorCode } from '../../../../src/http/problems/problemCatalogue.ts'
import type { EventStore } from '../../../../src/ports.ts'
import { type Answer, type Client, clientOf, isOverloaded, retryWhile } from '../../../support/client.ts'
import { sharedService, type TestService, writtenBy } from '../../../support/service.ts'
import { sendOnce, type Wire } from '../../../support/rawHttp.ts'
import { caller, startVariant, type Variant } from '../../../support/serviceVariants.ts'

/**
 * The harness of sets of bad input. A set is a table: each row has a request and the expected refusal. None of the requests
 * writes an event, and the watched resources stay unchanged.
 */

export type Refused<I> = readonly [name: string, input: I, status: number, code: string, pointer?: string | undefined]
/** Unusual but valid inputs. The response has at least the given members. */
export type Accepted<I, P> = readonly [name: string, input: I, status: number, members?: (resources: P) => object]

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
  readonly prepare: (client: Client, service: TestService) => Promise<P>
  readonly request: (input: I, resources: P) => BadRequest
  readonly refused: readonly Refused<I>[]
  readonly accepted?: readonly Accepted<I, P>[]
  /** The HTTP layer runs in the process of the test, so that changes of prototypes are visible to the test. */
  readonly isInProcess?: boolean
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

/** Far above the duration of any of these requests, also on a loaded machine that sheds load. */
export const ANSWER_MAX_MS = 120_000
/** The deadline of the body is no part of these sets, so that a loaded machine does not exceed it. */
const BODY_DEADLINE_MS = 30_000
const INTERNALS = /\.ts:\d|node:internal|\bat \S+ \(|\b(?:Type|Range|Syntax|Zod)Error\b/

/** Sends the request and expects the response within the time limit. */
export const askInTime = async (api: string, wire: Wire): Promise<Answer> => {
  const ask = async () => {
    const startedAtMs = performance.now()
    const answer = await sendOnce(api, wire)
    return { ...answer, tookMs: performance.now() - startedAtMs }
  }
  const { tookMs, ...answer } = await retryWhile(ask, isOverloaded)
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
  expect(text).not.to.match(INTERNALS)
  if (pointer !== undefined)
    expect(body.errors.map((violation: { pointer: string }) => violation.pointer)).to.include(pointer)
}

/** The names of all members of these prototypes. */
const prototypes = (): unknown =>
  [Object, Array, Function, String, Number, Map].map(({ prototype }) => Reflect.ownKeys(prototype).map(String))

export const badInput = <I, P extends Watched>(declared: BadInput<I, P>): void => {
  const { set, least, prepare, request, refused, accepted = [], isInProcess = false } = declared
  describe(`bad input: ${set}`, () => {
    let service: TestService
    let variant: Variant | undefined
    let client: Client
    let token: string
    let store: EventStore
    let resources: P
    let start: bigint
    let shown: object[]
    let untouched: unknown
    const answers: Answer[] = []
    const tenant = `bad-input-${set.toLowerCase().replaceAll(' ', '-')}`

    /** The watched representations; lists without their page, whose position follows the log. */
    const watched = async (): Promise<object[]> =>
      Promise.all(
        (resources.watched ?? []).map(async path => {
          const { page: _, ...shown } = (await client.get(path)).body
          return shown
        }),
      )
    const apiOf = (): string => variant?.api ?? service.api
    const ask = (input: I): Promise<Answer> => {
      const { method = 'GET', headers, ...rest } = request(input, resources)
      return askInTime(apiOf(), { method, ...rest, headers: [['Authorization', `Bearer ${token}`], ...headers] })
    }

    before(async () => {
      service = await sharedService()
      token = await service.token({ tenant })
      client = clientOf(service.api, token)
      if (isInProcess)
        variant = await startVariant(service, {
          authenticate: async () => ({ ...caller, tenant }),
          services: usual => ({ ...usual, bodyDeadlineMs: BODY_DEADLINE_MS }),
        })
      store = openEventStore({ connectionString: service.addresses.event_store })
      resources = await prepare(client, service)
      start = await store.head()
      shown = await watched()
      // Libraries that other test files load extend String.prototype, so that it is recorded after all are loaded.
      untouched = prototypes()
    })
    after(async () => {
      await variant?.close()
      await store.close()
    })

    it(`has ${least} distinct cases or more`, () => {
      expect(refused.length).to.be.at.least(least)
      const names = [...refused, ...accepted].map(([name]) => name)
      expect(names.filter((name, index) => names.indexOf(name) !== index)).to.deep.equal([])
    })
    for (const expected of refused)
      it(`${expected[2]} ${expected[3]}: ${expected[0]}`, async () => {
        const answer = await ask(expected[1])
        answers.push(answer)
        checkRefusal(answer, expected)
      })
    it('writes no event, and changes no resource', async () => {
      expect(answers).to.have.length(refused.length)
      expect(await writtenBy(store, { after: start, answers })).to.deep.equal([])
      expect(await watched()).to.deep.equal(shown)
    })
    if (isInProcess)
      it('changes no prototype', async () => {
        expect(prototypes()).to.deep.equal(untouched)
        expect(Reflect.get({}, 'polluted')).to.equal(undefined)
        const list = await clientOf(apiOf()).get('/orders?limit=1')
        expect([list.status, list.text.includes('polluted')]).to.deep.equal([200, false])
      })
    for (const [name, input, status, members] of accepted)
      it(`${status}: ${name}`, async () => {
        const answer = await ask(input)
        expect(answer.status, answer.text).to.equal(status)
        if (members) expect(answer.body).to.deep.include(members(resources))
      })
  })
}
