import type { Annotations, Claim } from '../claim.ts'
import { type Decider, type Rejection, reject } from '../decider.ts'
import { PersistentSet } from '../persistentMap.ts'
import type { SubscriptionEvent } from './events.ts'

/** Where delivery begins. `from_time`: RFC 3339, or null. */
export type DeliveryStart = { readonly from_position: bigint; readonly from_time: string | null }

export type CreateSubscription = DeliveryStart & {
  type: 'CreateSubscription'
  types: readonly string[]
  principal: string | null
  scopes: readonly string[]
  metadata: Annotations
  claim: Claim | null
}
export type PauseSubscription = { type: 'PauseSubscription' }
export type ResumeSubscription = { type: 'ResumeSubscription' }
/** `to_position`: the end of the log, now. */
export type ReplaySubscription = DeliveryStart & {
  type: 'ReplaySubscription'
  to_position: bigint
  claim: Claim | null
}
export type CompleteReplay = { type: 'CompleteReplay'; replay: number }
export type StopSubscription = { type: 'StopSubscription'; reason: string }
export type DeleteSubscription = { type: 'DeleteSubscription' }
export type SubscriptionCommand =
  | CreateSubscription
  | PauseSubscription
  | ResumeSubscription
  | ReplaySubscription
  | CompleteReplay
  | StopSubscription
  | DeleteSubscription

export type SubscriptionCode = 'resource_not_found' | 'concurrent_modification'

/**
 *   active ◀──resume── paused
 *     │ ▲ └───pause──────▲ │
 *     │ └─resume─┐         │
 *     └──stop──▶ stopped ◀─┘        each of the three ─▶ deleted, which is final
 *
 * Its holder pauses it, and may resume it whenever they like; the ledger stops it when its creator may no longer have the
 * facts, and resuming it is then for whoever found out that they may again. A replay may be asked for in any of the three,
 * and is carried out while it is active. Replays are counted; `isReplaying` is about the newest, which ends every one before it.
 */
export type SubscriptionState =
  | { readonly status: 'none' }
  | {
      readonly status: 'active' | 'paused' | 'stopped'
      readonly scopes: readonly string[]
      readonly replays: number
      readonly isReplaying: boolean
      /** The hashes of the idempotency keys that replays were asked for with. */
      readonly keys: PersistentSet<string>
    }
  | { readonly status: 'deleted' }

type Decision = readonly SubscriptionEvent[] | Rejection<SubscriptionCode>
type Living = Extract<SubscriptionState, { readonly replays: number }>
const NOTHING: readonly SubscriptionEvent[] = []

const create = ({ type: _, types, scopes, ...terms }: CreateSubscription, { status }: SubscriptionState): Decision =>
  status === 'none'
    ? [{ type: 'SubscriptionCreated', data: { ...terms, types: [...types], scopes: [...scopes] } }]
    : reject('concurrent_modification')

// What the ledger has stopped delivers nothing already: its holder is shown that it is stopped.
const pause = ({ status }: Living): Decision =>
  status === 'active' ? [{ type: 'SubscriptionPaused', data: {} }] : NOTHING

const resume = ({ status }: Living): Decision =>
  status === 'active' ? NOTHING : [{ type: 'SubscriptionResumed', data: {} }]

// The same key again is the same replay, whose number the one who asks finds by the key.
const replay = ({ type: _, ...where }: ReplaySubscription, { replays, keys }: Living): Decision =>
  where.claim !== null && keys.has(where.claim.key_hash)
    ? NOTHING
    : [{ type: 'SubscriptionReplayed', data: { replay: replays + 1, ...where } }]

const complete = ({ replay: number }: CompleteReplay, { replays, isReplaying }: Living): Decision =>
  isReplaying && number === replays ? [{ type: 'SubscriptionReplayCompleted', data: { replay: number } }] : NOTHING

const stop = ({ reason }: StopSubscription, { status }: Living): Decision =>
  status === 'stopped' ? NOTHING : [{ type: 'SubscriptionStopped', data: { reason } }]

const decide = (command: SubscriptionCommand, state: SubscriptionState): Decision => {
  if (command.type === 'CreateSubscription') return create(command, state)
  if (state.status === 'none' || state.status === 'deleted') return reject('resource_not_found')
  switch (command.type) {
    case 'PauseSubscription':
      return pause(state)
    case 'ResumeSubscription':
      return resume(state)
    case 'ReplaySubscription':
      return replay(command, state)
    case 'CompleteReplay':
      return complete(command, state)
    case 'StopSubscription':
      return stop(command, state)
    case 'DeleteSubscription':
      return [{ type: 'SubscriptionDeleted', data: {} }]
  }
}

const evolve = (subscription: SubscriptionState, event: SubscriptionEvent): SubscriptionState => {
  if (event.type === 'SubscriptionCreated')
    return { status: 'active', scopes: event.data.scopes, replays: 0, isReplaying: false, keys: PersistentSet.of() }
  // A stored fact is never refused; there is nothing that it could change of what is not, or no longer, there.
  if (subscription.status === 'none' || subscription.status === 'deleted') return subscription
  switch (event.type) {
    case 'SubscriptionPaused':
      return { ...subscription, status: 'paused' }
    case 'SubscriptionResumed':
      return { ...subscription, status: 'active' }
    case 'SubscriptionReplayed': {
      const { replay: number, claim } = event.data
      const keys = claim === null ? subscription.keys : subscription.keys.with(claim.key_hash)
      return { ...subscription, replays: number, isReplaying: true, keys }
    }
    case 'SubscriptionReplayCompleted':
      return { ...subscription, isReplaying: event.data.replay !== subscription.replays && subscription.isReplaying }
    case 'SubscriptionStopped':
      return { ...subscription, status: 'stopped' }
    case 'SubscriptionDeleted':
      return { status: 'deleted' }
  }
}

export const subscriptionDecider: Decider<SubscriptionState, SubscriptionCommand, SubscriptionEvent, SubscriptionCode> =
  {
    initial: { status: 'none' },
    decide,
    evolve,
  }
