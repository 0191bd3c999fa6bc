import type { PoolClient } from 'pg'
import { type Row, Unavailable } from '../../ports.ts'
import { type Copy, copyInto } from './copiedRows.ts'
import { statementError } from './errors.ts'

/** `copied`: the rows of a copy. */
export type Statement = {
  text: string
  values?: unknown[]
  name?: string
  query_timeout?: number
  copied?: Copy['copied']
}

export type Send = <R extends Row>(statement: Statement) => Promise<R[]>

type Turns = {
  readonly send: Send
  /** Resolves when every statement that was given to `send` has its answer. */
  readonly settled: () => Promise<unknown>
  /** Statements that still wait for their turn are not sent: after the rollback they would take effect on their own. */
  readonly end: () => void
}

const execute = async <R extends Row>(client: PoolClient, statement: Statement): Promise<R[]> => {
  const { text, copied, query_timeout } = statement
  if (copied === undefined) return (await client.query<R>(statement)).rows
  await copyInto(client, { text, copied }, query_timeout)
  return []
}

/** One after the other, so the time limit of each begins when it is sent. After a late answer nothing more is sent. */
export const sendInTurn = (client: PoolClient): Turns => {
  let last: Promise<unknown> = Promise.resolve()
  let unavailable: Unavailable | undefined
  let hasEnded = false
  const send: Send = async <R extends Row>(statement: Statement): Promise<R[]> => {
    const answer = last.then(() => {
      if (unavailable !== undefined) throw unavailable
      if (hasEnded) throw new Error('The transaction has ended.')
      return execute<R>(client, statement).catch((cause: unknown) => {
        const error = statementError(cause, 'none')
        if (error instanceof Unavailable) unavailable = error
        throw error
      })
    })
    last = answer.catch(() => undefined)
    return answer
  }
  return { send, settled: () => last, end: () => void (hasEnded = true) }
}
