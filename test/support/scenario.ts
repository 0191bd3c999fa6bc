import { expect } from 'chai'
import {
  type AnyCommand,
  type AnyEvent,
  type Decider,
  isRejection,
  type RejectionParams,
} from '../../streams/decider.ts'

/** Expectations of a decision. Events are compared completely and in order. */
export type Outcome<Event, Code extends string> = {
  /** Exactly these events; and the same command on the resulting state yields none. */
  expectOnce: (...events: readonly Event[]) => void
  /** Exactly these events; and the same command on the resulting state is rejected with `again`. */
  expectThenRefused: (again: Code, ...events: readonly Event[]) => void
  /** The command has been executed already. */
  expectNothing: () => void
  expectRejected: (code: Code, params?: RejectionParams) => void
}

export type Given<Command, Event, Code extends string> = {
  when: (command: Command) => Outcome<Event, Code>
}

/** The state after the events. */
export const stateAfter = <State, Event extends AnyEvent>(
  { initial, evolve }: Pick<Decider<State, never, Event, never>, 'initial' | 'evolve'>,
  events: readonly Event[],
): State => events.reduce((state, event) => evolve(state, event), initial)

/** Specs of a decider: given events, when command, expect events or a rejection. */
export const scenario = <State, Command extends AnyCommand, Event extends AnyEvent, Code extends string>(
  decider: Decider<State, Command, Event, Code>,
) => ({
  given: (...history: readonly Event[]): Given<Command, Event, Code> => ({
    when: command => {
      const decided = decider.decide(command, stateAfter(decider, history))
      const decideAgain = (events: readonly Event[]) =>
        decider.decide(command, stateAfter(decider, [...history, ...events]))
      const expectEvents = (events: readonly Event[]): void => {
        expect(events, 'a scenario that expects events names them').to.not.deep.equal([])
        expect(decided).to.deep.equal(events)
      }
      return {
        expectOnce: (...events) => {
          expectEvents(events)
          expect(decideAgain(events), 'decided a second time').to.deep.equal([])
        },
        expectThenRefused: (again, ...events) => {
          expectEvents(events)
          const second = decideAgain(events)
          expect(isRejection(second) ? second.rejected : second, 'decided a second time').to.equal(again)
        },
        expectNothing: () => expect(decided).to.deep.equal([]),
        expectRejected: (code, params) =>
          expect(decided).to.deep.equal(params === undefined ? { rejected: code } : { rejected: code, params }),
      }
    },
  }),
})
