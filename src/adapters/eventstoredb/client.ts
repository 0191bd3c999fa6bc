import { EventStoreDBClient, jsonEvent } from '@eventstore/db-client'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'
import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js'
import { status } from '@grpc/grpc-js'
import { asEsdb } from '../../lib/storeAddress.ts'
import type { Appended } from '../../ports.ts'
import { answerOf, type Decode } from './answers.ts'
import { AppendCall, type Sending } from './appendCall.ts'
import type { Append } from './appendMessages.ts'
import { AppendStream } from './appendStream.ts'
import { callError } from './callStatus.ts'
import { isUnimplemented } from './errors.ts'
import { ReadCall } from './readCall.ts'
import { type Session, sessionsOf } from './session.ts'

const { StreamsClient, StreamsService } = streamsGrpc

/**
 * The official client, which parses the connection string, finds the leader, and learns from failures where it is now; its
 * two most frequent methods are replaced by calls of our own. Its read resets the call when a stream does not exist, and an
 * HTTP/2 server that receives a thousand resets takes its client for an attacker and closes the connection with every
 * append in flight. Its append keeps the unanswered appends of all clients in one table, which the end of any connection
 * clears, and throws an uncatchable error when a response comes after that.
 */
export class Client {
  private readonly library: EventStoreDBClient
  private readonly connect: (node: string) => Session
  private current: { readonly node: string; readonly session: Session } | undefined
  private appends: Promise<AppendCall> | undefined
  private lacksBatchAppend = false

  /** Throws the library's error for a connection string that cannot be parsed. */
  constructor(connectionString: string) {
    this.library = EventStoreDBClient.connectionString(asEsdb(connectionString))
    this.connect = sessionsOf(connectionString, this.library.connectionName)
  }

  read(request: ReadReq, decode: Decode = answerOf): Promise<ReadCall> {
    return this.open(session => new ReadCall(session, request.serializeBinary(), decode))
  }

  /** Rejects with the library's errors, such as a wrong expected revision. */
  async append(append: Append, sending: Sending): Promise<Appended> {
    if (this.lacksBatchAppend) this.lacksBatchAppend = !(await this.supportsBatchAppend())
    if (this.lacksBatchAppend) return this.appendAlone(append, sending)
    try {
      const call = await this.appendCall()
      return await call.append(append, sending)
    } catch (error) {
      if (!isUnimplemented(error) || (await this.supportsBatchAppend())) throw error
      this.lacksBatchAppend = true
      return this.appendAlone(append, sending)
    }
  }

  /** After a call that a node has refused because it is not the leader: resolves when the next call is made at the leader. */
  async followLeader(): Promise<void> {
    // The library learns of the refusal in this turn of the event loop.
    await new Promise(resolve => setImmediate(resolve))
  }

  /** The version that the server reports; the embedded event store reports that of the one it is compatible with. */
  async serverVersion(): Promise<string> {
    return (await this.library['capabilities']).serverVersion
  }

  /** Ends all calls. */
  async dispose(): Promise<void> {
    this.current?.session.http2.destroy()
    await this.library.dispose()
  }

  /** Lets the library see the end of the call: after a lost connection or a refusal it finds the leader anew. */
  private open<Call extends ReadCall | AppendStream>(begin: (session: Session) => Call): Promise<Call> {
    const beginAt = (grpc: InstanceType<typeof StreamsClient>): Call => {
      try {
        return begin(this.sessionTo(grpc.getChannel().getTarget()))
      } catch (error) {
        throw callError(status.UNAVAILABLE, error instanceof Error ? error.message : String(error))
      }
    }
    return this.library['GRPCStreamCreator'](StreamsClient, 'streams', beginAt)()
  }

  /** `target`: a scheme and a node, such as `dns:127.0.0.1:2113`. The calls of an earlier connection end by themselves. */
  private sessionTo(target: string): Session {
    const node = target.slice(target.indexOf(':') + 1)
    const { http2 } = this.current?.session ?? {}
    if (this.current?.node === node && http2?.closed === false && !http2.destroyed) return this.current.session
    http2?.close()
    this.current = { node, session: this.connect(node) }
    return this.current.session
  }

  /** The call that carries all appends until the store or the connection ends it. */
  private async appendCall(): Promise<AppendCall> {
    this.appends ??= this.open(session => new AppendStream(session)).then(stream => new AppendCall(stream))
    const opening = this.appends
    const forget = (): void => void (this.appends === opening && (this.appends = undefined))
    const call = await opening.catch(error => {
      forget()
      throw error
    })
    if (call.isOpen()) return call
    forget()
    call.end()
    return this.appendCall()
  }

  /** By the methods that the server names. A proxy may respond as if it had none while there is no server behind it. */
  private supportsBatchAppend(): Promise<boolean> {
    return this.library['supports'](StreamsService.batchAppend)
  }

  /** A call for this append alone, for servers older than BatchAppend (21.6). */
  private async appendAlone({ stream, events, expected }: Append, sending: Sending): Promise<Appended> {
    sending.sent = true
    const options = { requiresLeader: true, expectedRevision: expected }
    const appended = await this.library.appendToStream(stream, events.map(jsonEvent), options)
    return { ok: true, revision: appended.nextExpectedRevision, position: appended.position?.commit ?? 0n }
  }
}
