import type { SubscriptionRow } from '../../../../projections/subscriptions/projection.ts'
import { type DeliveryStatus, deliveryStatus } from '../../../../projections/subscriptions/queries.ts'
import type { Recorded } from '../../../../streams/envelope.ts'
import type { OperationId, SubscriptionId } from '../../../../streams/ids.ts'
import type { SubscriptionEvent } from '../../../../streams/subscription/index.ts'
import { subscriptionEntity } from '../../../commands/entities.ts'
import { replayIdOf, replayOfOperation } from '../../../commands/subscriptions/ids.ts'
import { unlessUnavailable } from '../../../ports.ts'
import type { OperationView } from '../operationSchema.ts'
import { Problem } from '../../problems/problemCatalogue.ts'
import { visibleRow } from '../commonReplies.ts'
import type { AnyCall } from '../../services.ts'

/** The operation of a replay: a view of the subscription's stream, without a record of its own. */

export type Replayed = Recorded<Extract<SubscriptionEvent, { type: 'SubscriptionReplayed' }>>

/** The status of the delivery. Undefined without the database: the subscription is shown without it. */
export const statusOf = async ({ database }: AnyCall, row: SubscriptionRow): Promise<DeliveryStatus | undefined> => {
  const { text, values } = deliveryStatus(row)
  return (await unlessUnavailable(database.sql<DeliveryStatus>(text, values)))?.[0]
}

const isReplayNumber =
  (number: number) =>
  (recorded: Recorded<SubscriptionEvent>): recorded is Replayed =>
    recorded.event.type === 'SubscriptionReplayed' && recorded.event.data.replay === number

/** The state of an unfinished replay, which is the newest one: a new replay cancels the one before it. */
const stateOf = (row: SubscriptionRow, status: DeliveryStatus | undefined): OperationView['state'] =>
  row.state === 'active' && status?.is_current === true ? 'running' : 'pending'

/** Throws Problem `resource_not_found` without such a replay, or for a deleted subscription. */
export const replayView = async (call: AnyCall, operation: OperationId): Promise<OperationView> => {
  const { aggregates } = call.ledger
  const { id, replay } = replayOfOperation(operation)
  const row = await visibleRow(call, subscriptionEntity, id)
  const history = await Array.fromAsync(aggregates.events(subscriptionEntity, id))
  const started = history.find(isReplayNumber(replay))
  if (started === undefined) throw new Problem('resource_not_found')
  const completed = history.find(
    ({ event }) => event.type === 'SubscriptionReplayCompleted' && event.data.replay === replay,
  )
  const isNewest = replay === row.replays
  const status = completed === undefined && isNewest ? await statusOf(call, row) : undefined
  const state = completed ? 'succeeded' : isNewest ? stateOf(row, status) : 'cancelled'
  return render(id, { state, started, completed, status })
}

/** The response of the creating request, also for replays of its key. */
export const initialReplayView = (id: SubscriptionId, started: Replayed): OperationView =>
  render(id, { state: 'pending', started, completed: undefined, status: undefined })

type Replay = {
  readonly state: OperationView['state']
  readonly started: Replayed
  readonly completed: Recorded<SubscriptionEvent> | undefined
  readonly status: DeliveryStatus | undefined
}

const render = (id: SubscriptionId, { state, started, completed, status }: Replay): OperationView => {
  const { replay, from_position: from, to_position: to } = started.event.data
  const total = Math.max(0, Number(to - from + 1n))
  const delivered = status?.is_current === true ? Number(status.position - from + 1n) : 0
  const newest = completed ?? started
  return {
    id: replayIdOf(id, replay),
    kind: 'replay_subscription',
    state,
    version: Number(newest.revision),
    tenant_id: started.metadata.tenant,
    created_at: started.metadata.at,
    updated_at: newest.metadata.at,
    created_by: started.metadata.subject,
    metadata: {},
    progress: {
      done: completed ? total : Math.min(total, Math.max(0, delivered)),
      total,
      unit: 'positions',
      rate: null,
      eta_seconds: completed ? 0 : null,
    },
    result: completed ? { href: `/subscriptions/${id}` } : null,
    error: null,
    expires_at: null,
  }
}
