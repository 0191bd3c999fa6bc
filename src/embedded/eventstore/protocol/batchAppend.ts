import type { ServerDuplexStream } from '@grpc/grpc-js'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'
import type { Writer } from '../writer.ts'
import { type Proposal, type Target, openProposal } from './appendValidation.ts'
import { type BatchRequest, readBatchRequest } from './batchRequest.ts'
import { type BatchResponse, type Outcome, responseMessage } from './batchResponse.ts'

/** The BatchAppend method: many appends over one call, with correlation ids, answered as they are committed. */

/** Beyond this number of unanswered appends of one client, its further messages stay in the socket. */
const UNANSWERED_MAX = 2000

/** The sides of a call that the method needs. */
export type BatchCall = {
  /** The responses of one commit come together. */
  respond(responses: readonly BatchResponse[]): void
  pause(): void
  resume(): void
  /** Ends the call successfully. */
  end(): void
}

type Open = { readonly target: Target; readonly proposal: Proposal; readonly correlationId: Buffer | undefined }

/** The appends of one call. */
export class BatchAppends {
  private readonly writer: Writer
  private readonly call: BatchCall
  /** Appends whose last message has not come, by their correlation id. */
  private readonly open = new Map<string, Open>()
  private responses: BatchResponse[] = []
  private unanswered = 0
  private ended = false

  constructor(writer: Writer, call: BatchCall) {
    this.writer = writer
    this.call = call
  }

  receive(request: BatchRequest): void {
    const key = request.correlationId?.toString('latin1') ?? ''
    const opened = this.open.get(key) ?? begin(request)
    // The rest of an append that was refused before its last message is ignored, as by the real server.
    if (opened === undefined) return
    let refused = false
    for (const event of request.events) refused = opened.proposal.add(event) !== undefined
    if (!request.isFinal && !refused) return void this.open.set(key, opened)
    this.open.delete(key)
    this.unanswered += 1
    if (this.unanswered >= UNANSWERED_MAX) this.call.pause()
    void this.finish(opened)
  }

  /** The client sends no more messages. */
  end(): void {
    this.ended = true
    if (this.unanswered === 0) this.call.end()
  }

  private async finish({ target, proposal, correlationId }: Open): Promise<void> {
    const finished = proposal.finish()
    // A passed deadline takes precedence over every other reason.
    const isLate = target.deadlineMs <= Date.now()
    const outcome: Outcome =
      'request' in finished
        ? await this.writer.write(finished.request)
        : isLate
          ? { kind: 'timeout' }
          : finished.refused
    // The flush runs after the outcomes of the other requests of the commit, which are resolved already.
    if (this.responses.push({ correlationId, target, outcome }) === 1) process.nextTick(() => this.flush())
  }

  private flush(): void {
    const { responses } = this
    this.responses = []
    const wasPaused = this.unanswered >= UNANSWERED_MAX
    this.unanswered -= responses.length
    this.call.respond(responses)
    if (wasPaused && this.unanswered < UNANSWERED_MAX) this.call.resume()
    if (this.ended && this.unanswered === 0) this.call.end()
  }
}

const begin = ({ target, correlationId }: BatchRequest): Open | undefined =>
  target && { target, proposal: openProposal(target), correlationId }

/** The definition of the method for the gRPC library, with our encoding. */
export const BATCH_APPEND = {
  ...streamsGrpc.StreamsService.batchAppend,
  requestDeserialize: readBatchRequest,
  responseSerialize: responseMessage,
}

/** The method as a handler of the gRPC library, which serves the calls that batchStream.ts does not. */
export const batchAppend =
  (writer: Writer) =>
  (call: ServerDuplexStream<BatchRequest, BatchResponse>): void => {
    const appends = new BatchAppends(writer, {
      respond: responses => {
        for (const response of responses) if (call.writable) call.write(response)
      },
      pause: () => call.pause(),
      resume: () => call.resume(),
      end: () => call.end(),
    })
    call.on('data', (request: BatchRequest) => appends.receive(request))
    call.on('error', () => undefined)
    call.on('end', () => appends.end())
  }
