/** The contract of an aggregate: its pure functions, and the rejections of its commands. */

/** A refusal is a value from a closed list; the problem catalogue has an entry for each code. */
export type Rejection<Code extends string = string> = { readonly rejected: Code; readonly params?: RejectionParams }

/** Details of a rejection beyond its code: ids and amounts, never free text. */
export type RejectionParams = Readonly<Record<string, string | bigint>>

export const reject = <Code extends string>(rejected: Code, params?: RejectionParams): Rejection<Code> =>
  params === undefined ? { rejected } : { rejected, params }

export const isRejection = <Code extends string>(value: object): value is Rejection<Code> => 'rejected' in value

/**
 * The pure functions of an aggregate. No events of `decide` mean that the command was executed before.
 * `evolve` never refuses, because a stored event has happened.
 */
export type Decider<State, Command extends AnyCommand, Event, Code extends string> = {
  readonly initial: State
  readonly evolve: (state: State, event: Event) => State
  readonly decide: (command: Command, state: State) => readonly Event[] | Rejection<Code>
  readonly growth: Readonly<Record<Command['type'], StreamGrowth>>
}

type Row<Command, State, Decision> = readonly [StreamGrowth, (command: Command, state: State) => Decision]

/** A row for each command of an aggregate: how long its stream may be, and the function that decides. */
type Commands<Command extends AnyCommand, State, Decision> = {
  readonly [T in Command['type']]: Row<Extract<Command, { readonly type: T }>, State, Decision>
}

/** The members of a decider that follow from the table of its commands. */
export const decidedBy = <Command extends AnyCommand, State, Decision>(
  commands: Commands<Command, State, Decision>,
) => {
  const rows = commands as Readonly<Record<Command['type'], Row<Command, State, Decision>>>
  const growths = Object.entries<Row<Command, State, Decision>>(rows).map(([type, [growth]]) => [type, growth])
  return {
    decide: (command: Command, state: State): Decision => rows[command.type as Command['type']][1](command, state),
    growth: Object.fromEntries(growths) as Readonly<Record<Command['type'], StreamGrowth>>,
  }
}

/**
 * How long a stream may be for a command to extend it. Every read of an aggregate may have to fold its whole stream, so
 * no caller may let a stream grow without end:
 *
 *   limited    refused once the stream has its greatest length: a client could repeat the command forever
 *   reserved   refused later, within a reserve that `limited` commands leave: the next step of an ordinary life
 *   unlimited  never refused: ends or settles something, follows a limited command, or comes from the operator
 *
 * It is a member of every decider, so a new command does not compile until this is decided.
 */
export type StreamGrowth = 'limited' | 'reserved' | 'unlimited'

/** The refusal of a command because of the length of its stream, the same for every aggregate. */
export type GrowthCode = 'too_many_changes'

export type AnyCommand = { readonly type: string }

export type AnyEvent = { readonly type: string; readonly data: object }
