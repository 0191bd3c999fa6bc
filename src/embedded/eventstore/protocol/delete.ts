import type { ServerUnaryCall, sendUnaryData } from '@grpc/grpc-js'
import shared from '@eventstore/db-client/generated/shared_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import type { DeleteReq, DeleteResp, TombstoneReq, TombstoneResp } from '@eventstore/db-client/generated/streams_pb.js'
import type { Expected } from '../record.ts'
import type { Writer } from '../writer.ts'
import type { WriteRequest, Written } from '../writeRequest.ts'
import { targetOf } from './append.ts'
import { deadlineOf } from './deadline.ts'
import { nameProblem } from './appendValidation.ts'
import { type Failure, invalidArgument, streamDeleted, timedOut, unavailable, wrongVersion } from './status.ts'

/** `Delete`: hides the stream; appending to it makes it visible again. */
export const deleteStream =
  (writer: Writer) =>
  async (call: ServerUnaryCall<DeleteReq, DeleteResp>, callback: sendUnaryData<DeleteResp>): Promise<void> => {
    const removed = await remove(writer, 'delete', call)
    if ('failed' in removed) return callback(removed.failed)
    const position = new streams.DeleteResp.Position()
    position.setCommitPosition(removed.position).setPreparePosition(removed.position)
    callback(null, new streams.DeleteResp().setPosition(position))
  }

/** `Tombstone`: closes the stream permanently. */
export const tombstone =
  (writer: Writer) =>
  async (call: ServerUnaryCall<TombstoneReq, TombstoneResp>, callback: sendUnaryData<TombstoneResp>): Promise<void> => {
    const removed = await remove(writer, 'tombstone', call)
    if ('failed' in removed) return callback(removed.failed)
    const position = new streams.TombstoneResp.Position()
    position.setCommitPosition(removed.position).setPreparePosition(removed.position)
    callback(null, new streams.TombstoneResp().setPosition(position))
  }

type Call = ServerUnaryCall<DeleteReq, DeleteResp> | ServerUnaryCall<TombstoneReq, TombstoneResp>
type Removed = { readonly position: string } | { readonly failed: Failure }

const remove = async (writer: Writer, kind: WriteRequest['kind'], call: Call): Promise<Removed> => {
  const options = call.request.getOptions() ?? new streams.DeleteReq.Options().setAny(new shared.Empty())
  const target = targetOf(options)
  const problem = nameProblem(target.stream)
  if (problem !== undefined) return { failed: invalidArgument(problem) }
  const written = await writer.write({ kind, ...target, events: [], bytes: 0, deadlineMs: deadlineOf(call) })
  return removedOf(target.stream, target.expected, written)
}

const removedOf = (stream: string, expected: Expected, written: Written): Removed => {
  switch (written.kind) {
    case 'written':
      return { position: (written.position ?? 0n).toString() }
    case 'wrong_version':
      return { failed: wrongVersion(stream, expected, written.actual) }
    case 'deleted':
      return { failed: streamDeleted(stream) }
    case 'timeout':
      return { failed: timedOut() }
    case 'unavailable':
      return { failed: unavailable(written.effect) }
  }
}
