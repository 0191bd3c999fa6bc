import type { ServerUnaryCall, sendUnaryData } from '@grpc/grpc-js'
import shared from '@eventstore/db-client/generated/shared_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import type { DeleteReq, DeleteResp, TombstoneReq, TombstoneResp } from '@eventstore/db-client/generated/streams_pb.js'
import type { Writer } from '../writer.ts'
import { targetOf } from './append.ts'
import { deadlineOf } from './deadline.ts'
import { nameProblem } from './appendValidation.ts'
import { invalidArgument, notWritten, wrongVersion } from './status.ts'

const removal =
  <Req extends DeleteReq | TombstoneReq, Resp>(kind: 'delete' | 'tombstone', respond: (position: string) => Resp) =>
  (writer: Writer) =>
  async (call: ServerUnaryCall<Req, Resp>, callback: sendUnaryData<Resp>): Promise<void> => {
    const target = targetOf(call.request.getOptions() ?? new streams.DeleteReq.Options().setAny(new shared.Empty()))
    const problem = nameProblem(target.stream)
    if (problem !== undefined) return callback(invalidArgument(problem))
    const written = await writer.write({ kind, ...target, events: [], bytes: 0, deadlineMs: deadlineOf(call) })
    if (written.kind === 'written') return callback(null, respond((written.position ?? 0n).toString()))
    callback(
      written.kind === 'wrong_version'
        ? wrongVersion(target.stream, target.expected, written.actual)
        : notWritten(target.stream, written),
    )
  }

/** `Delete`: hides the stream; appending to it makes it visible again. */
export const deleteStream = removal<DeleteReq, DeleteResp>('delete', at =>
  new streams.DeleteResp().setPosition(new streams.DeleteResp.Position().setCommitPosition(at).setPreparePosition(at)),
)

/** `Tombstone`: closes the stream permanently. */
export const tombstone = removal<TombstoneReq, TombstoneResp>('tombstone', at =>
  new streams.TombstoneResp().setPosition(
    new streams.TombstoneResp.Position().setCommitPosition(at).setPreparePosition(at),
  ),
)
