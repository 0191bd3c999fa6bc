import shared from '@eventstore/db-client/generated/shared_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js'
import type { ReadOptions, SubscribeOptions } from '../../ports.ts'

const { ReadDirection } = streams.ReadReq.Options
/** System streams begin with a dollar sign. */
const NOT_SYSTEM = '^[^$]'
/** The distance of checkpoints for readers of rare events, in search windows of 32 events. */
const CHECKPOINT_WINDOWS = 4

const empty = (): InstanceType<typeof shared.Empty> => new shared.Empty()

const requestOf = (options: ReadReq.Options): ReadReq =>
  new streams.ReadReq().setOptions(
    options.setUuidOption(new streams.ReadReq.Options.UUIDOption().setString(empty())).setResolveLinks(false),
  )

/** Without `from`: forwards from the first event, or backwards from the last one. */
export const streamRequest = (
  stream: string,
  { from, direction = 'forwards', limit = Number.MAX_SAFE_INTEGER }: ReadOptions,
): ReadReq => {
  const identifier = new shared.StreamIdentifier()
  identifier.setStreamName(Buffer.from(stream, 'utf8'))
  const range = new streams.ReadReq.Options.StreamOptions().setStreamIdentifier(identifier)
  if (from !== undefined) range.setRevision(from.toString())
  else if (direction === 'forwards') range.setStart(empty())
  else range.setEnd(empty())
  const options = new streams.ReadReq.Options().setStream(range).setCount(limit.toString()).setNoFilter(empty())
  return requestOf(
    options.setReadDirection(direction === 'forwards' ? ReadDirection.FORWARDS : ReadDirection.BACKWARDS),
  )
}

/** The newest event of all streams. */
export const headRequest = (): ReadReq => {
  const all = new streams.ReadReq.Options.AllOptions().setEnd(empty())
  const options = new streams.ReadReq.Options().setAll(all).setCount('1').setNoFilter(empty())
  return requestOf(options.setReadDirection(ReadDirection.BACKWARDS))
}

type Subscription = Pick<SubscribeOptions, 'categories' | 'excludeTypes'> & {
  /** `end`: only events that are appended from now on. */
  readonly after: SubscribeOptions['after'] | 'end'
}

/** The store filters by stream or by type: with excluded types, the reader selects the categories. */
const filterMessage = ({ categories, excludeTypes = [] }: Subscription) => {
  const expression = new streams.ReadReq.Options.FilterOptions.Expression()
  const filter = new streams.ReadReq.Options.FilterOptions().setCount(empty())
  if (excludeTypes.length > 0)
    return filter.setEventType(expression.setRegex(`^(?!(?:${excludeTypes.join('|')})$)[^$]`))
  if (categories === undefined) expression.setRegex(NOT_SYSTEM)
  else expression.setPrefixList(categories.map(name => `${name}-`))
  return filter.setStreamIdentifier(expression)
}

/** The events of the categories after a position, stored and live. */
export const subscribeRequest = (subscription: Subscription): ReadReq => {
  const { after } = subscription
  const all = new streams.ReadReq.Options.AllOptions()
  if (after === 'start' || after === 0n) all.setStart(empty())
  else if (after === 'end') all.setEnd(empty())
  else all.setPosition(positionMessage(after))
  const filter = filterMessage(subscription)
  const options = new streams.ReadReq.Options().setAll(all).setFilter(filter)
  filter.setCheckpointintervalmultiplier(CHECKPOINT_WINDOWS)
  return requestOf(options.setSubscription(new streams.ReadReq.Options.SubscriptionOptions()))
}

const positionMessage = (position: bigint) =>
  new streams.ReadReq.Options.Position().setCommitPosition(position.toString()).setPreparePosition(position.toString())
