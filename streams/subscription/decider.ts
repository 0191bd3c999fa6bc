import type { DataOf } from '../codec.ts'
import { decidedBy, type Decider, type Rejection, reject } from '../decider.ts'
import { PersistentSet } from '../persistentMap.ts'
import type { SubscriptionEvent } from './events.ts'

type Created = DataOf<SubscriptionEvent, 'SubscriptionCreated'>
export type DeliveryStart = Pick<Created, 'from_position' | 'from_time'>

export type CreateSubscription = Created & { type: 'CreateSubscription' }
export type PauseSubscription = { type: 'PauseSubscription' }
export type ResumeSubscription = { type: 'ResumeSubscription' }
export type ReplaySubscription = Omit<DataOf<SubscriptionEvent, 'SubscriptionReplayed'>, 'replay'> & {
  type: 'ReplaySubscription'
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
 * The holder pauses and resumes. The ledger stops a subscription whose creator has lost the right to the facts; the
 * holder resumes it when the right is back. A replay may be requested in each of the three states, and is delivered
 * while the subscription is active. Replays are counted; `isReplaying` is about the newest, which ends all earlier
 * ones.
 */
export type SubscriptionState =
  | { readonly status: 'none' }
  | {
      readonly status: 'active' | 'paused' | 'stopped'
      readonly scopes: readonly string[]
      readonly replays: number
      readonly isReplaying: boolean
      /** The hashed idempotency keys of all requested replays. */
      readonly keys: PersistentSet<string>
    }
  | { readonly status: 'deleted' }

type Decision = readonly SubscriptionEvent[] | Rejection<SubscriptionCode>
type Existing = Extract<SubscriptionState, { readonly replays: number }>
const NOTHING: readonly SubscriptionEvent[] = []

const create = ({ type: _, ...terms }: CreateSubscription, { status }: SubscriptionState): Decision =>
  status === 'none' ? [{ type: 'SubscriptionCreated', data: terms }] : reject('concurrent_modification')

// A stopped subscription delivers nothing, so pausing it changes nothing: it stays stopped.
const pause = (_: PauseSubscription, { status }: Existing): Decision =>
  status === 'active' ? [{ type: 'SubscriptionPaused', data: {} }] : NOTHING

const resume = (_: ResumeSubscription, { status }: Existing): Decision =>
  status === 'active' ? NOTHING : [{ type: 'SubscriptionResumed', data: {} }]

// A repeated key is the same replay; its number is found by the key.
const replay = ({ type: _, ...where }: ReplaySubscription, { replays, keys }: Existing): Decision =>
  where.claim !== null && keys.has(where.claim.key_hash)
    ? NOTHING
    : [{ type: 'SubscriptionReplayed', data: { replay: replays + 1, ...where } }]

const complete = ({ replay: number }: CompleteReplay, { replays, isReplaying }: Existing): Decision =>
  isReplaying && number === replays ? [{ type: 'SubscriptionReplayCompleted', data: { replay: number } }] : NOTHING

const stop = ({ reason }: StopSubscription, { status }: Existing): Decision =>
  status === 'stopped' ? NOTHING : [{ type: 'SubscriptionStopped', data: { reason } }]

const remove = (): Decision => [{ type: 'SubscriptionDeleted', data: {} }]

/** Any other command than the first needs a subscription that exists. */
const onExisting =
  <C>(decide: (command: C, subscription: Existing) => Decision) =>
  (command: C, state: SubscriptionState): Decision =>
    state.status === 'none' || state.status === 'deleted' ? reject('resource_not_found') : decide(command, state)

const evolve = (subscription: SubscriptionState, event: SubscriptionEvent): SubscriptionState => {
  if (event.type === 'SubscriptionCreated')
    return { status: 'active', scopes: event.data.scopes, replays: 0, isReplaying: false, keys: PersistentSet.of() }
  // `evolve` never refuses a stored event; on a subscription that does not exist or is deleted it has no effect.
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

/** Pausing and stopping need a resumed subscription, and a completion its replay. */
export const subscriptionDecider: Decider<SubscriptionState, SubscriptionCommand, SubscriptionEvent, SubscriptionCode> =
  {
    initial: { status: 'none' },
    ...decidedBy<SubscriptionCommand, SubscriptionState, Decision>({
      CreateSubscription: ['unlimited', create],
      PauseSubscription: ['unlimited', onExisting(pause)],
      ResumeSubscription: ['limited', onExisting(resume)],
      ReplaySubscription: ['limited', onExisting(replay)],
      CompleteReplay: ['unlimited', onExisting(complete)],
      StopSubscription: ['unlimited', onExisting(stop)],
      DeleteSubscription: ['unlimited', onExisting(remove)],
    }),
    evolve,
  }
