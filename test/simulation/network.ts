import { Unavailable } from '../../src/ports.ts'
import type { Machine } from './machine.ts'
import type { Random } from './random.ts'
import type { Timeline } from './timeline.ts'

/**
 * The network between the processes and the servers. A request takes a drawn time to arrive, has its effect at the server in one
 * moment, and its answer takes a drawn time back. Either can be lost, and the process can end in between.
 */

export type ServerName = Unavailable['dependency']

/**
 * `away`: connections are refused. `hanging`: requests arrive, and have their effect when the condition is over.
 * `slow`: every request and answer takes a hundred times as long.
 */
export type Condition = 'up' | 'away' | 'hanging' | 'slow'

/** The result of an effect to which the server sends no answer, so that the process waits until its deadline. */
export const NO_ANSWER = Symbol('no answer')

export type Request<T> = {
  readonly machine: Machine
  readonly server: ServerName
  /** Whether the request may change something, so that its effect is unknown when the answer is lost. */
  readonly writes: boolean
  /** The time that the process waits for the answer. */
  readonly deadlineMs: number
  /** Runs at the server. An error that it throws is the server's answer. */
  readonly effect: () => T | typeof NO_ANSWER | Promise<T | typeof NO_ANSWER>
}

export type Network = {
  readonly request: <T>(requested: Request<T>) => Promise<T>
  readonly condition: (server: ServerName) => Condition
  readonly setCondition: (server: ServerName, condition: Condition) => void
  /** Sets the probability that an answer of the server is lost. */
  readonly setLoss: (server: ServerName, probability: number) => void
  /** The number of lost answers. */
  readonly lostAnswers: () => number
}

export type NetworkDependencies = { readonly timeline: Timeline; readonly random: Random }

const USUAL_MAX_MS = 3
const SLOW_FACTOR = 100
/** A few requests and answers take much longer than the others. */
const STRAGGLER_CHANCE = 0.02
const STRAGGLER_MAX_MS = 400
const HANGING_POLL_MS = 50

type Settle<T> = { readonly resolve: (value: T) => void; readonly reject: (error: Error) => void }

/**
 * The answer of the server, as a function that settles the request with it. This is no rejected promise, because an error that
 * arrives after the deadline would be an unhandled rejection.
 */
const outcomeOf = async <T>(
  effect: Request<T>['effect'],
): Promise<((request: Settle<T>) => void) | typeof NO_ANSWER> => {
  try {
    const result = await effect()
    return result === NO_ANSWER ? NO_ANSWER : ({ resolve }) => resolve(result)
  } catch (error) {
    return ({ reject }) => reject(error instanceof Error ? error : new Error(JSON.stringify(error)))
  }
}

export const createNetwork = ({ timeline, random }: NetworkDependencies): Network => {
  const conditions = new Map<ServerName, Condition>()
  const losses = new Map<ServerName, number>()
  let lost = 0
  const condition = (server: ServerName): Condition => conditions.get(server) ?? 'up'

  const latencyMs = (server: ServerName): number => {
    const usual = random.next() * (random.chance(STRAGGLER_CHANCE) ? STRAGGLER_MAX_MS : USUAL_MAX_MS)
    return condition(server) === 'slow' ? usual * SLOW_FACTOR : usual
  }

  /** Executes the request on its arrival, after a hanging server has recovered, or drops it if the server is away. */
  const arrive = (server: ServerName, execute: () => Promise<void>, drop: () => void): void => {
    timeline.after(latencyMs(server), function tryNow(): void | Promise<void> {
      const now = condition(server)
      if (now === 'away') return drop()
      if (now === 'hanging') return void timeline.after(HANGING_POLL_MS, tryNow)
      return execute()
    })
  }

  const request = <T>({ machine, server, writes, deadlineMs, effect }: Request<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      const fail = (kind: 'none' | 'unknown', reason: string): void =>
        reject(new Unavailable(server, { effect: kind, cause: new Error(reason) }))
      if (condition(server) === 'away')
        return void machine.deliver(latencyMs(server), () => fail('none', 'The connection was refused.'))
      const unanswered = writes ? ('unknown' as const) : ('none' as const)
      const giveUp = machine.deliver(deadlineMs, () => fail(unanswered, 'No answer within the deadline.'))
      const answered = (answer: () => void) => (): void => {
        giveUp()
        answer()
      }
      const execute = async (): Promise<void> => {
        const result = await outcomeOf(effect)
        if (result === NO_ANSWER) return
        const answer = (): void => result({ resolve, reject })
        if (random.chance(losses.get(server) ?? 0)) lost += 1
        else machine.deliver(latencyMs(server), answered(answer))
      }
      const refuse = (): void => fail(unanswered, 'The connection was lost.')
      const drop = (): void => void machine.deliver(latencyMs(server), answered(refuse))
      arrive(server, execute, drop)
    })

  return {
    request,
    condition,
    setCondition: (server, to) => void conditions.set(server, to),
    setLoss: (server, probability) => void losses.set(server, probability),
    lostAnswers: () => lost,
  }
}
