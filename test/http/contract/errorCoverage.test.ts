import { expect } from 'chai'
import { createConcurrencyLimits, OLDEST_VERSION, routes } from '../../../src/http/index.ts'
import { resolveVersionWithout } from '../../../src/http/versions/requestedVersion.ts'
import { type ErrorCode, Problem, statusOf } from '../../../src/http/problems/problemCatalogue.ts'
import type { AnyRoute } from '../../../src/http/route.ts'
import { errorsOf } from '../../../src/http/contract/errorCodesOfRoute.ts'
import { PersistentMap } from '../../../streams/persistentMap.ts'
import { anOrder, type Answer, type Client, clientOf, retryWhile } from '../../support/client.ts'
import { run } from '../../scripts/cli.ts'
import { eventually } from '../../support/eventually.ts'
import { sharedService, type TestService } from '../../support/service.ts'
import { expiredToken } from '../../support/expiredToken.ts'
import { everyConcurrency } from '../../support/limits.ts'
import * as variants from '../../support/serviceVariants.ts'
import { send, sendOnce, type Wire } from '../../support/rawHttp.ts'
import { type Example, examples, refusals } from '../requestExamples.ts'

/** Each endpoint × each error code that openapi.json declares for it, seen over a socket. */

type Headers = readonly (readonly [string, string])[]
type Ask = (
  change?: Partial<Wire> & { readonly add?: Headers; readonly without?: string; readonly api?: string },
) => Promise<Answer>
/** `ask` sends the endpoint's own example, changed as the code needs it. */
type Provoke = (ask: Ask, route: AnyRoute) => Promise<Answer>

/** The service variant whose limit is reached, by operation. */
const FULL: Readonly<Record<string, string>> = {
  create_subscription: 'noSubscriptions',
  create_export: 'noExports',
  issue_api_key: 'noExports',
  rotate_api_key: 'noKeysLater',
}

const SHORT_BODY_DEADLINE_MS = 20

/** Provocations that use up or change the resource of their example. The others are refused before, so they share one. */
const WITH_OWN_EXAMPLE: ReadonlySet<ErrorCode> = new Set([
  'concurrent_modification',
  'deadline_exceeded',
  'export_expired',
  'idempotency_in_progress',
  'idempotency_key_expired',
  'idempotency_key_reused',
])

describe('every error code of every endpoint', () => {
  const started: variants.Variant[] = []
  const api: Record<string, string> = {}
  let service: TestService
  let client: Client
  let token: string
  /** Resolves when an append has begun that never ends. */
  let hangingAppend = Promise.withResolvers<void>()

  before(async () => {
    service = await sharedService()
    token = await service.token({ tenant: variants.TENANT })
    client = clientOf(service.api, token)
    const start = async (name: string, wrong?: variants.Difference): Promise<void> => {
      const variant = await variants.startVariant(service, wrong)
      started.push(variant)
      api[name] = variant.api
    }
    await start('usual')
    // Lists need two items: records of operators, who act by commands alone, and closings of books that have an order.
    const operate = (...args: readonly string[]) => run('ledger.ts', args, { LEDGER_DATA_DIR: service.dataDir })
    for (const name of ['orders', 'invoices']) await operate('projections', 'verify', name, '--no-wait')
    await client.post('/orders', anOrder())
    for (const day of ['2026-10-30', '2026-10-31'])
      await operate('periods', 'close', '--tenant', variants.TENANT, '--through', day, '--reason', 'audited')
    // Every unfinished body waits for the whole of it.
    await start('impatient', { services: usual => ({ ...usual, bodyDeadlineMs: SHORT_BODY_DEADLINE_MS }) })
    await start('unavailable', variants.unavailable)
    await start('unansweredAppends', variants.unansweredAppends)
    await start('lostAppends', variants.lostAppends)
    await start('later', variants.later)
    await start('broken', variants.broken)
    await start('overloaded', variants.withoutTurns('too_many'))
    await start('stopping', { stopping: AbortSignal.abort() })
    await start('keyless', { authenticate: () => Promise.reject(new Problem('dependency_unavailable')) })
    await start('hanging', {
      store: real => ({
        ...real,
        append: () => {
          hangingAppend.resolve()
          return new Promise(() => undefined)
        },
      }),
    })
    await start('noExports', {
      services: usual => ({
        ...usual,
        concurrencyLimits: createConcurrencyLimits(everyConcurrency(0)),
        apiKeysPerTenantMax: 0,
      }),
    })
    // The renewal of an expired key needs a slot of the quota again.
    await start('noKeysLater', {
      world: { now: () => Date.now() + 91 * 24 * 60 * 60 * 1000 },
      services: usual => ({ ...usual, apiKeysPerTenantMax: 0 }),
    })
    await start('full', { services: usual => ({ ...usual, ledger: { ...usual.ledger, changesMax: 0 } }) })
    await start('noSubscriptions', { services: usual => ({ ...usual, subscriptionsPerTenantMax: 0 }) })
    await start('retired', { resolveVersion: resolveVersionWithout(new Set([OLDEST_VERSION])) })
    await start('suspended', {
      services: usual => ({ ...usual, tenantStatuses: () => ({ isSuspended: true, revoked: PersistentMap.of() }) }),
    })
    await start('limited', variants.limited)
    await start('crowded', variants.withoutTurns('caller'))
    await start('asApiKey', { authenticate: async () => ({ ...variants.caller, kind: 'api_key' }) })
    await start('usedUp', {
      authenticate: async () => ({ ...variants.caller, kind: 'api_key', quota: { requests: 0, windowSeconds: 60 } }),
    })
    await start('asUser', { authenticate: async () => ({ ...variants.caller, kind: 'user' }) })
  })
  after(async () => {
    await Promise.all(started.map(variant => variant.close()))
  })

  const expiredCursor = async (path: string, ask: Ask): Promise<Answer> => {
    // The list may not have its second item yet.
    const cursor = await eventually(async () => {
      const { body } = await ask({ api: api['usual'] ?? '', path: `${path}?limit=1` })
      return body.page.next_cursor as string | null
    })
    return ask({ api: api['later'] ?? '', path: `${path}?limit=1&cursor=${cursor}` })
  }
  const twice = async (ask: Ask, again: Parameters<Ask>[0]): Promise<Answer> => {
    const first = await ask()
    expect(first.status).to.be.lessThan(300)
    return ask(again)
  }

  const provocations: Partial<Record<ErrorCode, Provoke>> = {
    bad_request_framing: ask => ask({ add: [['Host', 'another.example']] }),
    uri_too_long: (ask, { operationId }) => ask({ path: `${pathOfLast(operationId)}?x=${'x'.repeat(9_000)}` }),
    headers_too_large: ask => ask({ add: [['X-Filler', 'x'.repeat(17_000)]] }),
    multiple_credentials: ask => ask({ add: [['Authorization', 'Bearer another']] }),
    unsupported_api_version: ask => ask({ add: [['API-Version', '1999-01-01']] }),
    version_retired: ask => ask({ api: api['retired'] ?? '', add: [['API-Version', OLDEST_VERSION]] }),
    unknown_parameter: (ask, { operationId }) => ask({ path: `${pathOfLast(operationId)}?nope=1` }),
    not_acceptable: ask => ask({ add: [['Accept', 'image/png']] }),
    overloaded: ask => ask({ api: api['overloaded'] ?? '' }),
    shutting_down: ask => ask({ api: api['stopping'] ?? '' }),
    internal_error: ask => ask({ api: api['broken'] ?? '' }),
    unauthenticated: ask => ask({ without: 'Authorization' }),
    token_invalid: ask => ask({ without: 'Authorization', add: [['Authorization', 'Bearer x.y.z']] }),
    token_expired: async ask =>
      ask({
        without: 'Authorization',
        add: [['Authorization', `Bearer ${await expiredToken(service, variants.TENANT)}`]],
      }),
    api_key_invalid: ask => ask({ without: 'Authorization', add: [['X-API-Key', 'lk_none']] }),
    insufficient_scope: async (ask, { scope }) => {
      const other = scope === 'ledger:read' ? 'orders:read' : 'ledger:read'
      const withOther = await service.token({ tenant: variants.TENANT, scopes: [other] })
      return ask({ without: 'Authorization', add: [['Authorization', `Bearer ${withOther}`]] })
    },
    dependency_unavailable: async ask => {
      expect((await ask({ api: api['unavailable'] ?? '' })).body.code).to.equal('dependency_unavailable')
      return ask({ api: api['keyless'] ?? '' })
    },
    too_many_changes: (ask, { operationId }) => {
      const part = operationId === 'create_payment' ? { body: JSON.stringify(otherBody(operationId)) } : {}
      return ask({ api: api['full'] ?? '', ...part })
    },
    policy_denied: ask => ask({ api: api['suspended'] ?? '' }),
    rate_limited: (ask, { scope }) => ask({ api: api[scope === 'none' ? 'crowded' : 'limited'] ?? '' }),
    quota_exceeded: (ask, { operationId }) => ask({ api: api[FULL[operationId] ?? 'usedUp'] ?? '' }),
    credential_not_permitted: (ask, { kinds }) => ask({ api: api[kinds ? 'asUser' : 'asApiKey'] ?? '' }),
    deadline_exceeded: ask => ask({ api: api['unansweredAppends'] ?? '' }),
    concurrent_modification: ask => ask({ api: api['lostAppends'] ?? '' }),
    unsupported_media_type: ask => ask({ without: 'Content-Type', add: [['Content-Type', 'text/plain']], body: 'x' }),
    payload_too_large: ask => ask({ body: JSON.stringify({ x: 'x'.repeat(70_000) }) }),
    request_timeout: ask => ask({ api: api['impatient'] ?? '', body: '{', unfinished: true }),
    invalid_json: ask => ask({ body: '{"a":' }),
    duplicate_json_key: ask => ask({ body: '{"a":1,"a":2}' }),
    json_limits_exceeded: ask => ask({ body: '['.repeat(40) }),
    validation_failed: (ask, { body, operationId }) =>
      body
        ? ask({ body: '{"no_such_member":1}' })
        : ask({ path: `${pathOfLast(operationId)}?${badParameter(operationId)}` }),
    resource_not_found: (ask, { operationId, path }) =>
      operationId.startsWith('read_issuer') ? ask({ api: api['usual'] ?? '' }) : ask({ path: missing(path) }),
    precondition_required: ask => ask({ without: 'If-Match' }),
    precondition_failed: ask => ask({ without: 'If-Match', add: [['If-Match', '"stale"']] }),
    precondition_invalid: (ask, { ifMatch, isList }) =>
      ifMatch
        ? ask({ without: 'If-Match', add: [['If-Match', 'not a tag']] })
        : ask({ add: [[isList ? 'If-Min-Position' : 'If-None-Match', 'not one']] }),
    projection_behind: ask => ask({ add: [['If-Min-Position', '999999999999']] }),
    cursor_invalid: (ask, { operationId }) => ask({ path: `${pathOfLast(operationId)}?cursor=forged` }),
    cursor_expired: (ask, { operationId }) => expiredCursor(pathOfLast(operationId), ask),
    idempotency_key_missing: ask => ask({ without: 'Idempotency-Key' }),
    idempotency_key_invalid: (ask, { idempotencyKey }) =>
      idempotencyKey
        ? ask({ without: 'Idempotency-Key', add: [['Idempotency-Key', 'not a key']] })
        : ask({ path: '/idempotency-keys/not%20a%20key' }),
    idempotency_key_reused: (ask, { operationId }) => twice(ask, { body: JSON.stringify(otherBody(operationId)) }),
    idempotency_key_expired: ask => twice(ask, { api: api['later'] ?? '' }),
    idempotency_in_progress: async ask => {
      hangingAppend = Promise.withResolvers<void>()
      void ask({ api: api['hanging'] ?? '' }).catch(() => undefined)
      await hangingAppend.promise
      return ask({ api: api['hanging'] ?? '' })
    },
    range_not_satisfiable: ask => ask({ add: [['Range', 'bytes=999999999999-']] }),
    export_expired: ask => ask({ api: api['later'] ?? '' }),
  }

  /** The paths of the newest examples by operation, for provocations that change the query only. */
  const lastPaths = new Map<string, string>()
  const pathOfLast = (operationId: string): string => lastPaths.get(operationId) ?? ''
  const lastBodies = new Map<string, object>()
  const otherBody = (operationId: string): object => {
    const body = { ...lastBodies.get(operationId) } as Record<string, unknown>
    if (operationId === 'create_payment') body['amount'] = 1
    else if (operationId === 'refund_payment') body['amount'] = 2
    else if (operationId === 'create_export') body['format'] = 'jsonl'
    else if (operationId === 'rotate_api_key') body['overlap_seconds'] = 1
    else if (operationId === 'replay_subscription') body['from'] = { position: '1' }
    else body['metadata'] = { other: 'yes' }
    return body
  }
  const BAD_PARAMETERS: Readonly<Record<string, string>> = {
    read_idempotency_key: 'operation=nope',
    read_docs: 'version=1999-01-01',
    read_docs_login: `code=${'x'.repeat(3_000)}`,
    read_events_manifest: 'from=2&to=1',
    read_audit_proof: 'tree_size=x',
    ready: 'for=nothing',
  }
  const badParameter = (operationId: string): string => {
    if (/^read_(order|invoice|payment|operation|account|journal_entry)$/.test(operationId)) return 'as_of=yesterday'
    return BAD_PARAMETERS[operationId] ?? 'limit=0'
  }
  const missing = (path: string): string =>
    path
      .replace('{id}', `${idPrefixOf(path)}_${'0'.repeat(26)}`)
      .replace('{code}', 'no_such_code')
      .replace('{file}', 'index.html')
      .replace('{version}', '1999-01-01')
      .replace('{name}', 'no.such.v1.json')
      .replace('{key}', 'x'.repeat(600))
  const idPrefixOf = (path: string): string =>
    ({
      orders: 'ord',
      invoices: 'inv',
      payments: 'pay',
      exports: 'op',
      operations: 'op',
      'api-keys': 'key',
      subscriptions: 'sub',
    })[path.split('/')[1]?.split(':')[0] ?? ''] ?? 'ord'

  const askerOf = (route: AnyRoute, example: Example): Ask => {
    lastPaths.set(route.operationId, example.path)
    if (example.body) lastBodies.set(route.operationId, example.body)
    const type = route.bodyType ?? 'application/json'
    const own: Headers = [
      ...(route.scope === 'none' ? [] : [['Authorization', `Bearer ${token}`] as const]),
      ...(example.body ? [['Content-Type', type] as const] : []),
      ...Object.entries(example.headers ?? {}),
    ]
    return async (change = {}) => {
      const kept = own.filter(([name]) => name !== change.without)
      const first = change.add?.[0]?.[0] === 'Authorization' && !change.without && route.scope === 'none'
      const headers = [...kept, ...(first ? [['Authorization', 'Bearer one'] as const] : []), ...(change.add ?? [])]
      const body = change.body ?? (example.body && JSON.stringify(example.body))
      const wire = {
        method: route.method,
        path: change.path ?? example.path,
        headers,
        ...(change.unfinished ? { unfinished: true } : {}),
      }
      const requested = body === undefined ? wire : { ...wire, body }
      const to = change.api ?? service.api
      // A machine under load makes any of them shed load; one does so always.
      return to === api['overloaded'] ? sendOnce(to, requested) : send(to, requested)
    }
  }

  const covered = new Set<string>()
  for (const route of routes)
    describe(`${route.method} ${route.path}`, () => {
      const { operationId } = route
      let shared: Promise<Example> | undefined
      it('succeeds', async () => {
        const make = examples[operationId]
        if (make === undefined) throw new Error(`There is no example of ${operationId}.`)
        const answer = await askerOf(route, await make(client))()
        expect(Object.keys(route.responses)).to.include(String(answer.status))
        expect(answer.status).to.be.lessThan(300)
      })
      for (const code of errorsOf(route))
        it(`answers ${statusOf(code)} ${code}`, async () => {
          const own = refusals[operationId]?.[code]
          const make = own ?? examples[operationId]
          const provoke = own
            ? (ask: Ask) => ask(code === 'policy_denied' ? { api: api['usual'] ?? '' } : {})
            : provocations[code]
          if (!make || !provoke) throw new Error(`Nothing provokes ${code} of ${operationId}.`)
          const hasOwn = own !== undefined || WITH_OWN_EXAMPLE.has(code)
          const attempt = async (): Promise<Answer> => {
            const example = await (hasOwn ? make(client) : (shared ??= make(client)))
            return provoke(askerOf(route, example), route)
          }
          // An export that has ended before its cancellation is answered with 200: the next may be caught in time.
          const hasEnded = ({ status }: Answer): boolean =>
            operationId === 'cancel_operation' && hasOwn && status === 200
          const answer = await retryWhile(attempt, hasEnded)
          expect([answer.status, answer.body?.code], answer.text).to.deep.equal([statusOf(code), code])
          covered.add(`${operationId} ${code}`)
        })
    })

  // A nested suite, since mocha runs the tests of a suite before those of its nested suites.
  describe('together', () => {
    it('are seen for each declaration of openapi.json', () => {
      const declared = routes.flatMap(one => errorsOf(one).map(code => `${one.operationId} ${code}`))
      process.stdout.write(`      ${covered.size} of ${declared.length} (endpoint, code) pairs seen\n`)
      expect([...covered]).to.have.members(declared)
    })
  })
})
