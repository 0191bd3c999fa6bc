import type { Annotations } from '../../streams/idempotencyRecord.ts'
import type { SubscriptionEvent } from '../../streams/subscription/index.ts'
import { type Projection, RESOURCE_COLUMNS, type ResourceRow } from '../projection.ts'

export type SubscriptionRow = ResourceRow & {
  readonly state: 'active' | 'paused' | 'stopped' | 'deleted'
  readonly types: readonly string[]
  readonly principal: string | null
  /** The scopes that its creator must keep. */
  readonly scopes: readonly string[]
  /** The start of delivery, or of the newest replay if there was one. */
  readonly from_position: bigint
  readonly from_time: string | null
  /** The number of replays; a checkpoint belongs to one of them. */
  readonly replays: number
  /** The end of the running replay; null when there is none. */
  readonly replay_to: bigint | null
  readonly stop_reason: string | null
  readonly metadata: Annotations
}

export const subscriptions: Projection<SubscriptionEvent, SubscriptionRow> = {
  name: 'subscriptions_v1',
  category: 'subscription',
  columns: {
    ...RESOURCE_COLUMNS,
    types: 'json',
    principal: 'text',
    scopes: 'json',
    from_position: 'bigint',
    from_time: 'timestamptz',
    replays: 'integer',
    replay_to: 'bigint',
    stop_reason: 'text',
    metadata: 'json',
  },
  first: 'SubscriptionCreated',
  begin: ({ event }) => {
    if (event.type !== 'SubscriptionCreated') throw new TypeError(event.type)
    const { claim: _, ...terms } = event.data
    return { state: 'active', ...terms, replays: 0, replay_to: null, stop_reason: null }
  },
  on: {
    SubscriptionCreated: () => ({}),
    SubscriptionPaused: () => ({ state: 'paused' }),
    SubscriptionResumed: () => ({ state: 'active', stop_reason: null }),
    SubscriptionReplayed: (_, { event: { data } }) => ({
      from_position: data.from_position,
      from_time: data.from_time,
      replays: data.replay,
      replay_to: data.to_position,
    }),
    SubscriptionReplayCompleted: (row, { event: { data } }) => (data.replay === row.replays ? { replay_to: null } : {}),
    SubscriptionStopped: (_, { event: { data } }) => ({ state: 'stopped', stop_reason: data.reason }),
    SubscriptionDeleted: () => ({ state: 'deleted', replay_to: null }),
  },
}
