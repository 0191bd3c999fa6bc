import { randomUUID } from 'node:crypto'
import { convertToCommandError } from '@eventstore/db-client'
import { MessageWriter } from '../../grpc/protobufWriter.ts'
import type { Appended } from '../../ports.ts'
import { type Append, type AppendAnswer, writeAppend } from './appendMessages.ts'
import type { AppendStream } from './appendStream.ts'
import { CallEnded, isCallError, isLost } from './errors.ts'

/** The appends of one BatchAppend call, each with a correlation id, by which its response is found in any order. */

/** The progress of an append. After `givenUp` it is not sent any more; `forget` is there once it is sent. */
export type Sending = { isAbandoned: boolean; sent: boolean; forget?: () => void }

type Waiting = {
  readonly id: string
  readonly append: Append
  readonly sending: Sending
  readonly resolve: (appended: Appended) => void
  readonly reject: (error: Error) => void
}

/** The number of appends in one write. */
const APPENDS_PER_WRITE_MAX = 100

/** Messages are encoded one after the other, so one writer is enough. */
const writer = new MessageWriter()

/** Writes the message of an append in front of those there. One that cannot be encoded is rejected: false. */
const encode = (append: Waiting): boolean => {
  const before = writer.size()
  try {
    writeAppend(writer, append.id, append.append)
  } catch (error) {
    writer.discard(before)
    append.reject(error instanceof Error ? error : new Error(String(error)))
    return false
  }
  writer.framed(before)
  return true
}

/** Long-lived: carries all appends of a connection until the store ends it or the connection is lost. */
export class AppendCall {
  private readonly call: AppendStream
  private readonly unanswered = new Map<string, Waiting>()
  private unsent: Waiting[] = []
  private isScheduled = false
  private isFull = false
  private isEnded = false

  constructor(call: AppendStream) {
    this.call = call
    call.on('data', (answers: readonly AppendAnswer[]) => this.settle(answers))
    call.on('drain', () => {
      this.isFull = false
      this.flush()
    })
    call.on('error', (error: Error) => this.fail(isCallError(error) ? convertToCommandError(error) : error))
    for (const end of ['end', 'close']) call.on(end, () => this.fail(new CallEnded('unknown')))
  }

  /** Rejects with the library's errors, such as a wrong expected revision. */
  append(append: Append, sending: Sending): Promise<Appended> {
    if (this.isEnded || sending.isAbandoned) return Promise.reject(new CallEnded('none'))
    return new Promise((resolve, reject) => {
      this.unsent.push({ id: randomUUID(), append, sending, resolve, reject })
      this.schedule()
    })
  }

  /** False once the store or the connection ends it, also while responses may still come. */
  isOpen(): boolean {
    return !this.isEnded && this.call.isOpen()
  }

  /** Accepts no more appends. The call ends when the store has answered those that were sent. */
  end(): void {
    this.flush()
    this.isEnded = true
    this.call.end()
    this.rejectUnsent(new CallEnded('none'))
  }

  /** The appends of one turn of the event loop share a write: requests that arrive together are read in one turn. */
  private schedule(): void {
    if (this.isScheduled || this.isFull) return
    this.isScheduled = true
    setImmediate(() => {
      this.isScheduled = false
      this.flush()
    })
  }

  private flush(): void {
    while (this.unsent.length > 0 && !this.isFull && !this.isEnded) {
      const appends = this.unsent.splice(0, APPENDS_PER_WRITE_MAX).filter(({ sending }) => !sending.isAbandoned)
      // The writer writes from back to front.
      writer.begin()
      for (const append of appends.toReversed()) if (encode(append)) this.expectAnswer(append)
      this.isFull = writer.size() > 0 && !this.call.write(writer.message())
    }
  }

  private expectAnswer(append: Waiting): void {
    append.sending.sent = true
    this.unanswered.set(append.id, append)
    append.sending.forget = () => this.unanswered.delete(append.id)
  }

  private settle(answers: readonly AppendAnswer[]): void {
    for (const { id, outcome } of answers) {
      const waiting = this.unanswered.get(id)
      this.unanswered.delete(id)
      if (outcome instanceof Error) waiting?.reject(outcome)
      else waiting?.resolve(outcome)
    }
  }

  private fail(error: Error): void {
    this.isEnded = true
    this.call.end()
    for (const { reject } of this.unanswered.values()) reject(error)
    this.unanswered.clear()
    this.rejectUnsent(isLost(error) ? new CallEnded('none') : error)
  }

  private rejectUnsent(error: Error): void {
    for (const { reject } of this.unsent) reject(error)
    this.unsent = []
  }
}
