import { expect } from 'chai'
import { routes } from '../../../src/http/index.ts'
import type { AnyRoute } from '../../../src/http/route.ts'
import { READ_SCOPES, SCOPES } from '../../../src/identity/principal.ts'
import { type Answer, type Client, clientOf, newKey } from '../../support/client.ts'
import { expiredToken } from '../../support/expiredToken.ts'
import { sharedService, type TestService } from '../../support/service.ts'
import { caller, startVariant, TENANT, type Variant } from '../../support/serviceVariants.ts'
import { type Example, examples } from '../requestExamples.ts'

/**
 * Every route × every wrong identity. Routes and expectations are both derived from the declarations, so that a new route is
 * tested at once.
 */

const OTHER_TENANT = 'matrix-other'
const NO_ID = '0'.repeat(26)
const ID = /[0-9A-HJKMNP-TV-Z]{26}/g

type Outcome = readonly [status: number, code: string | undefined]
type Identity = {
  readonly name: string
  /** Undefined when the route accepts the identity. */
  readonly expected: (route: AnyRoute) => Outcome | undefined
  readonly ask: (route: AnyRoute, example: Example) => Promise<Answer>
}

const authenticated = routes.filter(({ scope }) => scope !== 'none')
const scopesOf = ({ scope, orScopes = [] }: AnyRoute): readonly string[] => [scope, ...orScopes]
const namesResource = ({ params }: AnyRoute): boolean => params !== undefined && 'id' in params.shape
const isRead = ({ scope }: AnyRoute): boolean => scope.endsWith(':read')
/** Bodies of creating requests that refer to resources of another tenant. */
const refersToResource = ({ operationId }: AnyRoute): boolean =>
  ['raise_invoice', 'create_payment'].includes(operationId)

const withNewKey = ({ headers = {}, ...example }: Example): Example => ({
  ...example,
  headers: 'Idempotency-Key' in headers ? { ...headers, 'Idempotency-Key': newKey() } : headers,
})

describe('every route and every wrong identity', () => {
  let service: TestService
  let owner: Client
  const variants: Record<string, Variant> = {}
  const keys: Record<string, string> = {}

  const send = (api: string, route: AnyRoute, { path, body, headers }: Example, credential: object) => {
    const type = body ? { 'content-type': route.bodyType ?? 'application/json' } : {}
    return clientOf(api).request(route.method, path, {
      ...(body ? { raw: JSON.stringify(body) } : {}),
      headers: { ...type, ...headers, ...credential },
    })
  }
  const withToken = (make: () => Promise<string>): Identity['ask'] => {
    return async (route, example) => send(service.api, route, example, { authorization: `Bearer ${await make()}` })
  }
  const asVariant =
    (name: string): Identity['ask'] =>
    (route, example) =>
      send(variants[name]?.api ?? '', route, example, {})

  const foreign = (route: AnyRoute): Outcome | undefined =>
    namesResource(route) || refersToResource(route) ? [404, 'resource_not_found'] : undefined

  const identities: readonly Identity[] = [
    {
      name: 'a request without a credential',
      expected: () => [401, 'unauthenticated'],
      ask: (route, example) => send(service.api, route, example, {}),
    },
    {
      name: 'an expired token',
      expected: () => [401, 'token_expired'],
      ask: withToken(() => expiredToken(service, TENANT)),
    },
    {
      name: 'a forged token',
      expected: () => [401, 'token_invalid'],
      ask: withToken(async () => `${(await service.token({ tenant: TENANT })).slice(0, -8)}AAAAAAAA`),
    },
    {
      name: 'a malformed API key',
      expected: () => [401, 'api_key_invalid'],
      ask: (route, example) => send(service.api, route, example, { 'x-api-key': `lk_dev_${NO_ID}_x_y` }),
    },
    {
      name: 'two credentials',
      expected: () => [400, 'multiple_credentials'],
      ask: async (route, example) =>
        send(service.api, route, example, {
          authorization: `Bearer ${await service.token({ tenant: TENANT })}`,
          'x-api-key': 'lk_any',
        }),
    },
    {
      name: 'a token with every scope but the needed one',
      expected: () => [403, 'insufficient_scope'],
      ask: (route, example) => {
        const scopes = SCOPES.filter(scope => !scopesOf(route).includes(scope))
        return withToken(() => service.token({ tenant: TENANT, scopes }))(route, example)
      },
    },
    {
      name: 'an API key where the operation is no reading',
      expected: route => (isRead(route) ? undefined : [403, 'credential_not_permitted']),
      ask: asVariant('apiKey'),
    },
    {
      name: 'another tenant’s API key',
      expected: route => (isRead(route) ? foreign(route) : [403, 'credential_not_permitted']),
      ask: (route, example) => send(service.api, route, example, { 'x-api-key': keys['foreign'] ?? '' }),
    },
    {
      name: 'a revoked API key',
      expected: () => [401, 'api_key_invalid'],
      ask: (route, example) => send(service.api, route, example, { 'x-api-key': keys['revoked'] ?? '' }),
    },
    {
      name: 'a user where only workloads are permitted',
      expected: ({ kinds }) => (kinds && !kinds.includes('user') ? [403, 'credential_not_permitted'] : undefined),
      ask: withToken(() => service.token({ tenant: TENANT, user: true, subject: 'a-user' })),
    },
    {
      name: 'another tenant’s workload',
      expected: foreign,
      ask: withToken(() => service.token({ tenant: OTHER_TENANT })),
    },
    {
      name: 'another tenant’s user',
      expected: route => (route.kinds?.includes('user') === false ? undefined : foreign(route)),
      ask: withToken(() => service.token({ tenant: OTHER_TENANT, user: true, subject: 'a-user-of-another' })),
    },
    {
      name: 'another tenant’s workload whose headers name this tenant',
      expected: foreign,
      ask: async (route, example) =>
        send(service.api, route, example, {
          authorization: `Bearer ${await service.token({ tenant: OTHER_TENANT })}`,
          'x-tenant-id': TENANT,
          'x-forwarded-user': 'tester',
          'x-user-role': 'admin',
        }),
    },
  ]

  before(async () => {
    service = await sharedService()
    owner = clientOf(service.api, await service.token({ tenant: TENANT }))
    const issuedTo = async (tenant: string) => {
      const manager = clientOf(service.api, await service.token({ tenant }))
      const { body } = await manager.post('/api-keys', { name: 'matrix', scopes: READ_SCOPES })
      return { key: String(body.secret), revoke: () => manager.request('DELETE', `/api-keys/${body.id}`) }
    }
    keys['foreign'] = (await issuedTo(OTHER_TENANT)).key
    const gone = await issuedTo(TENANT)
    await gone.revoke()
    keys['revoked'] = gone.key
    const asKey = { ...caller, kind: 'api_key' } as const
    variants['apiKey'] = await startVariant(service, { authenticate: async () => asKey })
  })
  after(async () => {
    for (const variant of Object.values(variants)) await variant.close()
  })

  const exampleOf = async ({ operationId }: AnyRoute): Promise<Example> => {
    const make = examples[operationId]
    if (make === undefined) throw new Error(`There is no example of ${operationId}.`)
    return make(owner)
  }

  let cases = 0
  for (const route of authenticated)
    describe(`${route.method} ${route.path}`, () => {
      let shared: Promise<Example> | undefined
      /** All requests are refused, so that one resource serves them all, each under a key of its own. */
      const refusedExample = async (): Promise<Example> => withNewKey(await (shared ??= exampleOf(route)))
      for (const { name, expected, ask } of identities) {
        const outcome = expected(route)
        if (outcome === undefined) continue
        it(`answers ${outcome.join(' ')} to ${name}`, async () => {
          const answer = await ask(route, await refusedExample())
          expect([answer.status, answer.body.code], answer.text).to.deep.equal(outcome)
          cases += 1
        })
      }
      if (namesResource(route))
        it('answers for resources of another tenant as for missing ones, to the byte', async () => {
          const example = await refusedExample()
          const missing = { ...example, path: example.path.replace(ID, NO_ID) }
          const asOtherTenant = withToken(() => service.token({ tenant: OTHER_TENANT }))
          const [ofAnother, ofNone] = [await asOtherTenant(route, example), await asOtherTenant(route, missing)]
          const id = example.path.match(ID)?.[0] ?? ''
          const bytesOf = ({ text, body }: Answer) => text.replaceAll(body.correlation_id, '').replaceAll(id, NO_ID)
          expect(bytesOf(ofAnother)).to.equal(bytesOf(ofNone))
          const headersOf = ({ headers }: Answer) => [...headers.keys()].toSorted()
          expect(headersOf(ofAnother)).to.deep.equal(headersOf(ofNone))
        })
    })

  describe('together', () => {
    it('have as many cases as the declarations require', () => {
      const expected = authenticated.flatMap(route =>
        identities.filter(one => one.expected(route) !== undefined),
      ).length
      process.stdout.write(`      ${cases} of ${expected} cases of ${authenticated.length} routes\n`)
      expect(cases).to.equal(expected)
    })
  })
})
