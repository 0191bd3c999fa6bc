import { partsOf } from '../../../streams/aggregate.ts'
import { aggregates } from '../../../streams/index.ts'
import { invoices } from '../../../projections/invoices/projection.ts'
import { orders } from '../../../projections/orders/projection.ts'
import { payments } from '../../../projections/payments/projection.ts'
import { invoiceView } from '../../../projections/invoices/queries.ts'
import { orderView } from '../../../projections/orders/queries.ts'
import { paymentView } from '../../../projections/payments/queries.ts'
import type { StoredEvent } from '../../../src/ports.ts'
import type { Attempt, History } from '../history.ts'
import type { SimulatedLog } from '../eventStore.ts'
import { timeOf } from '../machine.ts'
import { type AnyProjection, rowOf } from './folding.ts'
import { violation, type Violation } from './violation.ts'

/** The answers that each client got, held against the log and against the answers before them. */

type Answered = Attempt & { readonly answer: NonNullable<Attempt['answer']> }
const isAnswered = (attempt: Attempt): attempt is Answered => attempt.answer !== undefined

const place = ({ action, sent, answer }: Answered): string =>
  `#${action} ${sent.correlationId} ${sent.operation} ${sent.id ?? ''} → ${answer.status} ${answer.code ?? ''}`

const noInternalErrors = (answered: readonly Answered[]): Violation[] =>
  answered
    .filter(({ answer }) => answer.status === 500)
    .map(one => violation('no answer is a 500', `${place(one)} ${String((one.answer.fault as Error)?.stack)}`))

const CATEGORIES_OF_AUDIT: ReadonlySet<string> = new Set(['access'])
/** A key that is bound, and a refusal that was recorded under it, are no effect on the books. */
const RECORDED_REFUSALS: ReadonlySet<string> = new Set([
  'PaymentInitiated',
  'PaymentFailed',
  'PaymentRefused',
  'PaymentReleased',
  'ReferenceRefused',
  'ReferenceTaken',
  'ReferenceReleased',
  'RefundInitiated',
  'RefundRefused',
  'KeyBound',
  'OrderInvoiceRefused',
])

/** A 404 after the key was bound: the resource was revoked or deleted in between, for good, so that the answer stays. */
const mayLeave = (status: number, type: string): boolean =>
  (status === 409 && RECORDED_REFUSALS.has(type)) || (status === 404 && type === 'KeyBound')

const correlationOf = ({ metadata }: StoredEvent): unknown => metadata['$correlationId']

/** A 503, or a 4xx, left nothing in the books. A refusal that was recorded under a key is an event of its own. */
const refusedWithoutEffect = (answered: readonly Answered[], log: SimulatedLog): Violation[] => {
  const effects = Map.groupBy(
    log.events.filter(({ stream }) => !CATEGORIES_OF_AUDIT.has(partsOf(stream).category)),
    correlationOf,
  )
  return answered.flatMap(one => {
    const { status } = one.answer
    if (status < 400 || status === 500 || status === 504) return []
    const left = (effects.get(one.sent.correlationId) ?? []).filter(({ type }) => !mayLeave(status, type))
    if (left.length === 0) return []
    return [violation('a refused request has no effect', `${place(one)} left ${left.map(({ type }) => type).join()}`)]
  })
}

const keyScope = ({ sent: { caller, operation, headers = {}, id = '' } }: Attempt): string | undefined => {
  const key = headers['idempotency-key']
  return key === undefined ? undefined : [caller.tenant, caller.subject, operation, key, id].join(' ')
}

const bodyOf = ({ sent: { body } }: Attempt): string => JSON.stringify(body ?? null)

/** Once a key has an answer, the same request gets the same bytes, and another request is refused. */
const oneAnswerPerKey = (answered: readonly Answered[]): Violation[] => {
  const byKey = Map.groupBy(answered.filter(keyScope), keyScope)
  return [...byKey.values()].flatMap(attempts => {
    const created = attempts.filter(({ answer }) => answer.status === 201 || answer.status === 200)
    const first = created.toSorted((a, b) => a.endedMs - b.endedMs)[0]
    if (first === undefined) return []
    return attempts.flatMap(one => {
      const isSame = bodyOf(one) === bodyOf(first)
      const isCreated = one.answer.status === 201 || one.answer.status === 200
      if (isCreated && (!isSame || one.answer.text !== first.answer.text))
        return [
          violation(
            'one key, one result',
            `${place(first)} and ${place(one)}: ${first.answer.text} ${one.answer.text}`,
          ),
        ]
      const isLater = one.beganMs > first.endedMs
      const isRefusal = one.answer.status === 409 && one.answer.code !== 'idempotency_in_progress'
      if (isLater && isSame && isRefusal && one.answer.code !== 'concurrent_modification')
        return [violation('a definitive answer never changes', `${place(first)}, then ${place(one)}`)]
      return []
    })
  })
}

/** Refusals of an order, which are recorded once the key of the request is bound. */
const RECORDED_CODES: ReadonlySet<string> = new Set(['order_has_invoices', 'order_state_conflict'])

/** A request that is refused after its key was bound is refused for ever, whatever becomes of the order. */
const refusalsUnderBoundKeysStay = (attempts: readonly Attempt[], { events }: SimulatedLog): Violation[] => {
  const byCorrelation = new Map(attempts.map(one => [one.sent.correlationId, one]))
  const byKey = Map.groupBy(attempts.filter(isAnswered), keyScope)
  return events
    .filter(({ type }) => type === 'KeyBound')
    .flatMap(bound => {
      const binding = byCorrelation.get(String(correlationOf(bound)))
      const same = (binding && byKey.get(keyScope(binding)))?.filter(one => bodyOf(one) === bodyOf(binding)) ?? []
      const refused = same.find(
        ({ answer, beganMs }) =>
          answer.code !== undefined && RECORDED_CODES.has(answer.code) && timeOf(beganMs) > bound.storedAt,
      )
      const taken = refused && same.find(({ answer, beganMs }) => answer.status < 300 && beganMs > refused.endedMs)
      return taken ? [violation('a definitive answer never changes', `${place(refused)}, then ${place(taken)}`)] : []
    })
}

const ETAG = /^"(\d+)[.-]/
const revisionIn = (etag: string | undefined): bigint | undefined => {
  const found = ETAG.exec(etag ?? '')?.[1]
  return found === undefined ? undefined : BigInt(found)
}

type Shown = { readonly projection: AnyProjection; readonly render: (row: never) => object }
const SHOWN: Readonly<Record<string, Shown>> = {
  order: { projection: orders, render: orderView },
  invoice: { projection: invoices, render: invoiceView },
  payment: { projection: payments, render: paymentView },
}
const categoryOf = (id: string): string =>
  Object.values(aggregates).find(({ prefix }) => id.startsWith(`${prefix}_`))?.category ?? ''

/** The resource as it was at this revision, as the log has it now. */
const viewAt = (log: SimulatedLog, id: string, revision: bigint): string | undefined => {
  const category = categoryOf(id)
  const shown = SHOWN[category]
  const row = shown && rowOf(log, `${category}-${id}`, shown.projection, revision)
  return row && JSON.stringify(shown.render(row as never))
}

/** A representation is the fold of its stream up to the revision of its ETag, whoever answered. */
const representationsAreFolds = (answered: readonly Answered[], log: SimulatedLog): Violation[] =>
  answered.flatMap(one => {
    const { status, body, headers, text } = one.answer
    const id = body?.['id']
    const revision = revisionIn(headers['ETag'])
    if (status >= 300 || status === 202 || typeof id !== 'string' || revision === undefined) return []
    const expected = viewAt(log, id, revision)
    if (expected === undefined || expected === text) return []
    return [violation('a representation is the fold of its stream', `${place(one)} says ${text}, the log ${expected}`)]
  })

/** A read shows no less than any answer that was given before the read began. */
const readsAreMonotone = (answered: readonly Answered[]): Violation[] => {
  const told = answered.flatMap(one => {
    const id = one.answer.body?.['id']
    const revision = revisionIn(one.answer.headers['ETag'])
    return one.answer.status < 300 && typeof id === 'string' && revision !== undefined ? [{ one, id, revision }] : []
  })
  const byId = Map.groupBy(told, ({ id }) => id)
  return [...byId.values()].flatMap(all =>
    all
      .filter(({ one }) => one.sent.operation.startsWith('read_'))
      .flatMap(read =>
        all
          .filter(({ one, revision }) => one.endedMs < read.one.beganMs && revision > read.revision)
          .slice(0, 1)
          .map(({ one }) =>
            violation('a read is never older than what was told', `${place(one)}, then ${place(read.one)}`),
          ),
      ),
  )
}

const staleMeansNewer = (answered: readonly Answered[]): Violation[] =>
  answered
    .filter(({ sent, answer }) => answer.status === 412 && answer.headers['ETag'] === sent.headers?.['if-match'])
    .map(one => violation('a 412 names a newer version', place(one)))

type Listed = { readonly id: string; readonly version: number; readonly tenant_id: string }
const listsAreTrue = (answered: readonly Answered[], log: SimulatedLog): Violation[] =>
  answered
    .filter(({ sent, answer }) => /^list_(orders|invoices|payments)$/.test(sent.operation) && answer.status === 200)
    .flatMap(one => {
      const items = (one.answer.body?.['items'] ?? []) as readonly Listed[]
      return items.flatMap(item => {
        if (item.tenant_id !== one.sent.caller.tenant)
          return [violation('no row of another tenant is visible', `${place(one)} shows ${item.id}`)]
        const expected = viewAt(log, item.id, BigInt(item.version))
        return expected === JSON.stringify(item)
          ? []
          : [
              violation(
                'a list shows folds of streams',
                `${place(one)} shows ${JSON.stringify(item)}, the log ${expected}`,
              ),
            ]
      })
    })

/** A list that says that it is as of a position knows everything of the tenant up to there, but for what is parked. */
const listsAreComplete = (
  answered: readonly Answered[],
  log: SimulatedLog,
  heldBack: ReadonlySet<string>,
): Violation[] => {
  const created = Map.groupBy(
    log.events.filter(({ revision }) => revision === 0n),
    ({ stream, metadata }) => JSON.stringify([metadata['tenant'], partsOf(stream).category]),
  )
  return answered
    .filter(({ sent, answer }) => /^list_(orders|invoices|payments)$/.test(sent.operation) && answer.status === 200)
    .flatMap(one => {
      const { items, page } = one.answer.body as never as {
        items: readonly Listed[]
        page: { has_more: boolean; as_of_position: string }
      }
      if (page.has_more) return []
      const category = one.sent.operation.slice('list_'.length, -1)
      const asked = BigInt(one.sent.headers?.['if-min-position'] ?? 0)
      const asOf = BigInt(page.as_of_position)
      const shown = new Set(items.map(({ id }) => id))
      const expected = created.get(JSON.stringify([one.sent.caller.tenant, category])) ?? []
      return expected
        .filter(
          ({ stream, position }) =>
            position <= (asOf > asked ? asOf : asked) &&
            !shown.has(partsOf(stream).id) &&
            !isDeleted(log, stream) &&
            !heldBack.has(partsOf(stream).id),
        )
        .slice(0, 1)
        .map(({ stream }) =>
          violation('a list is complete up to its position', `${place(one)} as of ${asOf} lacks ${stream}`),
        )
    })
}

const isDeleted = (log: SimulatedLog, stream: string): boolean =>
  log.stream(stream).some(({ type }) => type === 'OrderDeleted' || type === 'WrittenByANewerBuild')

/** `heldBack`: the ids of which a table did not take a row at some time. */
export const checkAnswers = (history: History, log: SimulatedLog, heldBack: ReadonlySet<string>): Violation[] => {
  const answered = history.attempts.filter(isAnswered)
  return [
    ...noInternalErrors(answered),
    ...refusedWithoutEffect(answered, log),
    ...oneAnswerPerKey(answered),
    ...refusalsUnderBoundKeysStay(history.attempts, log),
    ...representationsAreFolds(answered, log),
    ...readsAreMonotone(answered),
    ...staleMeansNewer(answered),
    ...listsAreTrue(answered, log),
    ...listsAreComplete(answered, log, heldBack),
  ]
}
