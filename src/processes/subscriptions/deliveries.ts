import { type SubscriptionDelivery, takeDelivery } from '../../feeds/subscriptionCheckpoints.ts'
import { type OpenDelivery, openLine } from './delivery.ts'
import type { SubscriptionDependencies } from './dependencies.ts'
import { checkpointOf, provideTopics, removeTopics, withdrawRights } from './subscriptionTopics.ts'
import { createTopicWork } from './topicWork.ts'
import { createWatch, sendTo } from './permissionMonitor.ts'

/** The work for each subscription, by the state that it is in: its delivery here and now, that on its topics beside it. */

export type Lines = {
  /** A look at the database begins, whose rows come next. */
  readonly lookBegins: () => void
  /** Does what is due, and says whether there may be more at once. Throws Unavailable, Replaced, or what the broker refuses. */
  readonly attend: (line: SubscriptionDelivery, reached: bigint) => Promise<boolean>
  /** After any failure its topics are looked at before it is delivered again. */
  readonly setAside: (id: string) => Promise<void>
  readonly open: () => readonly string[]
  readonly closeAll: () => Promise<void>
}

const hasReplayed = (
  { replay, replays, position, replay_to, is_behind }: SubscriptionDelivery,
  reached: bigint,
): boolean =>
  replay_to !== null && replay === replays && reached >= replay_to && (!is_behind || (position ?? -1n) >= replay_to)

export const createLines = (parts: SubscriptionDependencies, epoch: bigint): Lines => {
  const { sql } = parts.database
  const lines = new Map<string, OpenDelivery>()
  const doubtful = new Set<string>()
  const watch = createWatch(parts)
  const topicWork = createTopicWork()

  const close = async (id: string): Promise<void> => {
    const line = lines.get(id)
    lines.delete(id)
    await line?.close()
  }

  const opened = async (line: SubscriptionDelivery): Promise<OpenDelivery> => {
    const known = lines.get(line.id)
    if (known) return known
    const fresh = await openLine(parts, line, await takeDelivery(sql, checkpointOf(line, epoch)))
    lines.set(line.id, fresh)
    return fresh
  }

  const afterwards = (line: SubscriptionDelivery, work: Promise<void>): Promise<void> =>
    work.then(() => void doubtful.delete(line.id))

  /** The work on its topics that it needs before anything else; none when it may be delivered, or has nothing to wait for. */
  const topicWorkFor = async (line: SubscriptionDelivery): Promise<(() => Promise<void>) | 'none' | 'deliver'> => {
    if (line.state === 'deleted') return () => afterwards(line, removeTopics(parts, line))
    // Its delivery ends, and then its principal's right to read: nothing comes behind what was read last.
    if (line.state === 'stopped' || !(await watch.isAllowed(line)))
      return line.acl === 'granted' ? () => withdrawRights(parts, line, epoch) : 'none'
    if (line.acl === null || doubtful.has(line.id)) return () => afterwards(line, provideTopics(parts, line, epoch))
    return line.state === 'active' ? 'deliver' : 'none'
  }

  const proceed = async (line: SubscriptionDelivery, reached: bigint): Promise<boolean> => {
    const delivery = await opened(line)
    if (hasReplayed(line, reached)) await sendTo(parts, line, { type: 'CompleteReplay', replay: line.replays })
    const isDue = line.is_behind || line.replay !== line.replays
    if (isDue) await delivery.deliver(line, reached)
    return isDue
  }

  return {
    lookBegins: () => topicWork.lookBegins(),
    attend: async (line, reached) => {
      if (topicWork.isUnderWay(line.id)) return false
      const due = await topicWorkFor(line)
      if (due === 'none' || due === 'deliver') topicWork.forget(line.id)
      if (due === 'deliver') return proceed(line, reached)
      await close(line.id)
      if (line.state === 'deleted') watch.forget(line.id)
      if (due !== 'none') topicWork.want(line, due)
      return false
    },
    setAside: async id => {
      doubtful.add(id)
      await close(id)
    },
    open: () => [...lines.keys()],
    closeAll: async () => {
      await Promise.all([topicWork.stop(), ...[...lines.keys()].map(close)])
    },
  }
}
