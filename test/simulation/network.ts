import { Unavailable } from '../../src/ports.ts'
import type { Machine } from './machine.ts'
import type { Random } from './random.ts'
import type { Timeline } from './timeline.ts'

/**
 * The way between a process and a server. A request takes a drawn time to arrive, is carried out there in one moment, and
 * its answer takes a drawn time back; either may be lost, and a process may end in between.
 */
export type ServerName = Unavailable['dependency']

/**
 * `away`: connections are refused. `hanging`: requests arrive and are carried out, if at all, when the fault is over.
 * `slow`: everything takes a hundred times as long.
 */
export type Condition = 'up' | 'away' | 'hanging' | 'slow'

/** Stands for the answer of a server that sends none: the deadline of the process ends the wait. */
export const NO_ANSWER = Symbol('no answer')

export type Request<T> = {
  readonly machine: Machine
  readonly server: ServerName
  /** Whether it may change something there: then a lost answer leaves its effect unknown. */
  readonly writes: boolean
  /** How long the process waits for the answer. */
  readonly deadlineMs: number
  /** Executed at the server. An error that it throws is the server's answer. */
  readonly effect: () => T | typeof NO_ANSWER | Promise<T | typeof NO_ANSWER>
}

export type Network = {
  readonly request: <T>(asked: Request<T>) => Promise<T>
  readonly condition: (server: ServerName) => Condition
  readonly setCondition: (server: ServerName, condition: Condition) => void
  /** The chance that an answer is lost while a fault says so. */
  readonly setLoss: (server: ServerName, probability: number) => void
  readonly lost: () => number
}

export type NetworkDependencies = { readonly timeline: Timeline; readonly random: Random }

const USUAL_MAX_MS = 3
const SLOW_FACTOR = 100
/** Now and then one request is much slower than its like. */
const STRAGGLER_CHANCE = 0.02
const STRAGGLER_MAX_MS = 400
const HANGING_POLL_MS = 50

type Settle<T> = { readonly resolve: (value: T) => void; readonly reject: (error: Error) => void }

/**
 * The answer of the server, as a call that settles the request with it. An answer that comes after the deadline settles
 * nothing any more, and an error in it must not become a rejection that no caller sees.
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

  const wayMs = (server: ServerName): number => {
    const usual = random.next() * (random.chance(STRAGGLER_CHANCE) ? STRAGGLER_MAX_MS : USUAL_MAX_MS)
    return condition(server) === 'slow' ? usual * SLOW_FACTOR : usual
  }

  /** Carries the request out once the server is there again; a request whose connection broke may be lost on the way. */
  const arrive = (server: ServerName, carryOut: () => Promise<void>, drop: () => void): void => {
    timeline.after(wayMs(server), function tryNow(): void | Promise<void> {
      const now = condition(server)
      if (now === 'away') return drop()
      if (now === 'hanging') return void timeline.after(HANGING_POLL_MS, tryNow)
      return carryOut()
    })
  }

  const request = <T>({ machine, server, writes, deadlineMs, effect }: Request<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      const fail = (kind: 'none' | 'unknown', reason: string): void =>
        reject(new Unavailable(server, kind, new Error(reason)))
      if (condition(server) === 'away')
        return void machine.deliver(wayMs(server), () => fail('none', 'The connection was refused.'))
      const unanswered = writes ? ('unknown' as const) : ('none' as const)
      const giveUp = machine.deliver(deadlineMs, () => fail(unanswered, 'No answer within the deadline.'))
      const answered = (answer: () => void) => (): void => {
        giveUp()
        answer()
      }
      const carryOut = async (): Promise<void> => {
        const result = await outcomeOf(effect)
        if (result === NO_ANSWER) return
        const answer = (): void => result({ resolve, reject })
        if (random.chance(losses.get(server) ?? 0)) lost += 1
        else machine.deliver(wayMs(server), answered(answer))
      }
      const refuse = (): void => fail(unanswered, 'The connection was lost.')
      const drop = (): void => void machine.deliver(wayMs(server), answered(refuse))
      arrive(server, carryOut, drop)
    })

  return {
    request,
    condition,
    setCondition: (server, to) => void conditions.set(server, to),
    setLoss: (server, probability) => void losses.set(server, probability),
    lost: () => lost,
  }
}
