import { expect } from 'chai'
import fc from 'fast-check'
import { isRejection } from '../../streams/decider.ts'
import { subscription, type SubscriptionEvent } from '../../streams/subscription/index.ts'
import { scenario, stateAfter } from '../support/scenario.ts'
import { anySubscriptionCommand, anySubscriptionEvent } from './arbitraries.ts'
import { createSubscription, replaySubscription, subscriptionCreated, subscriptionReplayed } from './samples.ts'

const { given } = scenario(subscription.decider)
const pause = { type: 'PauseSubscription' } as const
const resume = { type: 'ResumeSubscription' } as const
const stop = { type: 'StopSubscription', reason: 'tenant_suspended' } as const
const remove = { type: 'DeleteSubscription' } as const
const complete = (replay: number) => ({ type: 'CompleteReplay' as const, replay })

const paused: SubscriptionEvent = { type: 'SubscriptionPaused', data: {} }
const resumed: SubscriptionEvent = { type: 'SubscriptionResumed', data: {} }
const stopped: SubscriptionEvent = { type: 'SubscriptionStopped', data: { reason: 'tenant_suspended' } }
const deleted: SubscriptionEvent = { type: 'SubscriptionDeleted', data: {} }
const completed = (replay: number): SubscriptionEvent => ({ type: 'SubscriptionReplayCompleted', data: { replay } })

describe('a subscription', () => {
  describe('is created', () => {
    it('with its idempotency record', () =>
      given().when(createSubscription).expectThenRefused('concurrent_modification', subscriptionCreated))
    it('once, also when it was deleted', () =>
      given(subscriptionCreated, deleted).when(createSubscription).expectRejected('concurrent_modification'))
  })

  describe('is paused and resumed', () => {
    it('from one to the other', () => {
      given(subscriptionCreated).when(pause).expectOnce(paused)
      given(subscriptionCreated, paused).when(resume).expectOnce(resumed)
    })
    it('without an event when it is in that state already', () => {
      given(subscriptionCreated, paused).when(pause).expectNothing()
      given(subscriptionCreated).when(resume).expectNothing()
    })
    it('also after the ledger has stopped it', () =>
      given(subscriptionCreated, stopped).when(resume).expectOnce(resumed))
    it('but not paused while it is stopped, because its resumption would circumvent the stop', () =>
      given(subscriptionCreated, stopped).when(pause).expectNothing())
  })

  describe('is stopped', () => {
    it('with the reason', () => given(subscriptionCreated).when(stop).expectOnce(stopped))
    it('also while it is paused', () => given(subscriptionCreated, paused).when(stop).expectOnce(stopped))
    it('again after it was resumed', () => given(subscriptionCreated, stopped, resumed).when(stop).expectOnce(stopped))
  })

  describe('is replayed', () => {
    it('by each command, with a number for each replay', () => {
      given(subscriptionCreated).when(replaySubscription('k1')).expectOnce(subscriptionReplayed(1, 'k1'))
      given(subscriptionCreated, subscriptionReplayed(1))
        .when(replaySubscription('k1'))
        .expectOnce(subscriptionReplayed(2, 'k1'))
    })
    it('once per key', () =>
      given(subscriptionCreated, subscriptionReplayed(1, 'k1'), subscriptionReplayed(2))
        .when(replaySubscription('k1'))
        .expectNothing())
    it('by each command without a key', () => {
      const second = subscription.decider.decide(
        replaySubscription(),
        stateAfter(subscription.decider, [subscriptionCreated, subscriptionReplayed(1)]),
      )
      expect(second).to.deep.equal([subscriptionReplayed(2)])
    })
    it('and completed once, the newest replay alone', () => {
      given(subscriptionCreated, subscriptionReplayed(1)).when(complete(1)).expectOnce(completed(1))
      given(subscriptionCreated, subscriptionReplayed(1), subscriptionReplayed(2)).when(complete(1)).expectNothing()
      given(subscriptionCreated).when(complete(1)).expectNothing()
    })
    it('also while it is paused or stopped', () => {
      given(subscriptionCreated, paused).when(replaySubscription('k1')).expectOnce(subscriptionReplayed(1, 'k1'))
      given(subscriptionCreated, stopped).when(replaySubscription('k1')).expectOnce(subscriptionReplayed(1, 'k1'))
    })
  })

  describe('that was deleted or never created', () => {
    it('is deleted once', () =>
      given(subscriptionCreated).when(remove).expectThenRefused('resource_not_found', deleted))
    for (const command of [pause, resume, stop, remove, replaySubscription(), complete(1)])
      it(`refuses ${command.type} as not found`, () => {
        given(subscriptionCreated, deleted).when(command).expectRejected('resource_not_found')
        given().when(command).expectRejected('resource_not_found')
      })
  })

  describe('for any sequence of commands', () => {
    const COMMANDS = { maxLength: 40 }

    it('folds any sequence of its own events without an error', () =>
      fc.assert(
        fc.property(fc.array(anySubscriptionEvent, COMMANDS), events => {
          stateAfter(subscription.decider, events)
        }),
      ))

    it('numbers its replays without a gap, completes each at most once, and has no event after its deletion', () =>
      fc.assert(
        fc.property(fc.array(anySubscriptionCommand, COMMANDS), commands => {
          const events: SubscriptionEvent[] = []
          for (const command of [createSubscription, ...commands]) {
            const decided = subscription.decider.decide(command, stateAfter(subscription.decider, events))
            if (!isRejection(decided)) events.push(...decided)
          }
          const numbers = (type: SubscriptionEvent['type']) =>
            events.flatMap(event => (event.type === type && 'replay' in event.data ? [event.data.replay] : []))
          const begun = numbers('SubscriptionReplayed')
          expect(begun).to.deep.equal(begun.map((_, n) => n + 1))
          const ended = numbers('SubscriptionReplayCompleted')
          expect(new Set(ended).size).to.equal(ended.length)
          const end = events.findIndex(({ type }) => type === 'SubscriptionDeleted')
          if (end >= 0) expect(events).to.have.length(end + 1)
        }),
      ))
  })
})
