/** A refusal is a value from a closed list: the caller can be told, and the problem table names it. */
export type Rejection<Code extends string = string> = { readonly rejected: Code; readonly params?: RejectionParams }

/** What a rejection may tell the caller beyond its code: ids and amounts, never free text. */
export type RejectionParams = Readonly<Record<string, string | bigint>>

export const reject = <Code extends string>(rejected: Code, params?: RejectionParams): Rejection<Code> =>
  params === undefined ? { rejected } : { rejected, params }

export const isRejection = <Code extends string>(value: object): value is Rejection<Code> => 'rejected' in value

/**
 * The pure heart of an aggregate. `decide` only dispatches; no yield of events means that the command was already
 * carried out. `evolve` never refuses: what is stored has happened.
 */
export type Decider<State, Command, Event, Code extends string> = {
  readonly initial: State
  readonly evolve: (state: State, event: Event) => State
  readonly decide: (command: Command, state: State) => readonly Event[] | Rejection<Code>
}

/** The shape that every event has in this house. */
export type AnyEvent = { readonly type: string; readonly data: object }
