import { invoices } from '../../../projections/invoices/projection.ts'
import { invoiceView } from '../../../projections/invoices/queries.ts'
import { orders } from '../../../projections/orders/projection.ts'
import { orderView } from '../../../projections/orders/queries.ts'
import { payments } from '../../../projections/payments/projection.ts'
import { paymentView } from '../../../projections/payments/queries.ts'
import { partsOf } from '../../../streams/aggregate.ts'
import { aggregates } from '../../../streams/index.ts'
import { type Texts, withTexts } from '../../../src/personalTexts/personalTexts.ts'
import type { SimulatedLog } from '../eventStore.ts'
import { UNKNOWN_EVENT_TYPE } from '../unknownEventType.ts'
import { type Answered, textOf } from './answered.ts'
import { type AnyProjection, rowOf } from './folding.ts'
import { violation, type Violation } from './violation.ts'

/** The representations of resources in answers and lists, compared with the log and with earlier answers. */

const ETAG = /^"(\d+)[.-]/
const revisionIn = (etag: string | undefined): bigint | undefined => {
  const matches = ETAG.exec(etag ?? '')?.[1]
  return matches === undefined ? undefined : BigInt(matches)
}

type View = { readonly projection: AnyProjection; readonly render: (row: never) => object }
const VIEWS: Readonly<Record<string, View>> = {
  order: { projection: orders, render: orderView },
  invoice: { projection: invoices, render: invoiceView },
  payment: { projection: payments, render: paymentView },
}
const categoryOf = (id: string): string =>
  Object.values(aggregates).find(({ prefix }) => id.startsWith(`${prefix}_`))?.category ?? ''

/** The representation of the resource at this revision, made from the log. */
const expectedAt = (log: SimulatedLog, texts: Texts, id: string, revision: bigint): string | undefined => {
  const category = categoryOf(id)
  const view = VIEWS[category]
  const row = view && rowOf(log, `${category}-${id}`, view.projection, revision)
  return row && JSON.stringify(view.render(withTexts(row, texts) as never))
}

/** A representation is the fold of its stream up to the revision in its ETag, whichever instance answered. */
export const representationsAreFolds = (answered: readonly Answered[], log: SimulatedLog, texts: Texts): Violation[] =>
  answered.flatMap(one => {
    const { status, body, headers, text } = one.answer
    const id = body?.['id']
    const revision = revisionIn(headers['ETag'])
    if (status >= 300 || status === 202 || typeof id !== 'string' || revision === undefined) return []
    const expected = expectedAt(log, texts, id, revision)
    if (expected === undefined || expected === text) return []
    return [
      violation('a representation is the fold of its stream', `${textOf(one)} has ${text}, by the log ${expected}`),
    ]
  })

/** A read shows a state that is no older than that in any answer which ended before the read began. */
export const readsAreMonotone = (answered: readonly Answered[]): Violation[] => {
  const shown = answered.flatMap(one => {
    const id = one.answer.body?.['id']
    const revision = revisionIn(one.answer.headers['ETag'])
    return one.answer.status < 300 && typeof id === 'string' && revision !== undefined ? [{ one, id, revision }] : []
  })
  const byId = Map.groupBy(shown, ({ id }) => id)
  return [...byId.values()].flatMap(all =>
    all
      .filter(({ one }) => one.sent.operation.startsWith('read_'))
      .flatMap(read =>
        all
          .filter(({ one, revision }) => one.endedMs < read.one.beganMs && revision > read.revision)
          .slice(0, 1)
          .map(({ one }) =>
            violation('a read is never older than an earlier answer', `${textOf(one)}, then ${textOf(read.one)}`),
          ),
      ),
  )
}

/** A 412 has an ETag that differs from the one in If-Match. */
export const staleMeansNewer = (answered: readonly Answered[]): Violation[] =>
  answered
    .filter(({ sent, answer }) => answer.status === 412 && answer.headers['ETag'] === sent.headers?.['if-match'])
    .map(one => violation('a 412 names a newer version', textOf(one)))

const isList = ({ sent, answer }: Answered): boolean =>
  /^list_(orders|invoices|payments)$/.test(sent.operation) && answer.status === 200

type Listed = { readonly id: string; readonly version: number; readonly tenant_id: string }
type List = { readonly items: readonly Listed[]; readonly page: { has_more: boolean; as_of_position: string } }
const listIn = ({ answer }: Answered): List => answer.body as List

/** Each item of a list is the fold of its stream at its version, and belongs to the caller's tenant. */
export const listItemsAreFolds = (answered: readonly Answered[], log: SimulatedLog, texts: Texts): Violation[] =>
  answered.filter(isList).flatMap(one =>
    listIn(one).items.flatMap(item => {
      if (item.tenant_id !== one.sent.caller.tenant)
        return [violation('no row of another tenant is visible', `${textOf(one)} shows ${item.id}`)]
      const expected = expectedAt(log, texts, item.id, BigInt(item.version))
      const listed = JSON.stringify(item)
      if (expected === listed) return []
      return [
        violation('a list item is the fold of its stream', `${textOf(one)} has ${listed}, by the log ${expected}`),
      ]
    }),
  )

const isDeleted = (log: SimulatedLog, stream: string): boolean =>
  log.stream(stream).some(({ type }) => type === 'OrderDeleted' || type === UNKNOWN_EVENT_TYPE)

/**
 * A list without further pages has every resource of the tenant that was created up to its position, except those in `refused`:
 * ids of which a table has refused a row.
 */
export const listsAreComplete = (
  answered: readonly Answered[],
  log: SimulatedLog,
  refused: ReadonlySet<string>,
): Violation[] => {
  const created = Map.groupBy(
    log.events.filter(({ revision }) => revision === 0n),
    ({ stream, metadata }) => JSON.stringify([metadata['tenant'], partsOf(stream).category]),
  )
  return answered.filter(isList).flatMap(one => {
    const { items, page } = listIn(one)
    if (page.has_more) return []
    const category = one.sent.operation.slice('list_'.length, -1)
    const requested = BigInt(one.sent.headers?.['if-min-position'] ?? 0)
    const asOf = BigInt(page.as_of_position)
    const upTo = asOf > requested ? asOf : requested
    const shown = new Set(items.map(({ id }) => id))
    const isMissing = (stream: string): boolean => {
      const { id } = partsOf(stream)
      return !shown.has(id) && !isDeleted(log, stream) && !refused.has(id)
    }
    const expected = created.get(JSON.stringify([one.sent.caller.tenant, category])) ?? []
    const missing = expected.find(({ stream, position }) => position <= upTo && isMissing(stream))
    if (missing === undefined) return []
    const detail = `${textOf(one)} as of ${asOf} lacks ${missing.stream}`
    return [violation('a list is complete up to its position', detail)]
  })
}
