import { type Line, takeDelivery } from '../../feeds/subscribed.ts'
import { type OpenLine, openLine } from './line.ts'
import type { SubscriptionParts } from './parts.ts'
import { checkpointOf, provideTopics, removeTopics, withdrawRights } from './topics.ts'
import { createWatch, sendTo } from './watch.ts'

/** What has to be done for each subscription, by the state that it is in. */

export type Lines = {
  /** Does what is due, and says whether there may be more at once. Throws Unavailable, Replaced, or what the broker refuses. */
  readonly attend: (line: Line, reached: bigint) => Promise<boolean>
  /** Whatever was wrong with it, its topics are looked at before it is delivered again. */
  readonly setAside: (id: string) => Promise<void>
  readonly open: () => readonly string[]
  readonly closeAll: () => Promise<void>
}

const hasReplayed = ({ replay, replays, position, replay_to, is_behind }: Line, reached: bigint): boolean =>
  replay_to !== null && replay === replays && reached >= replay_to && (!is_behind || (position ?? -1n) >= replay_to)

export const createLines = (parts: SubscriptionParts, epoch: bigint): Lines => {
  const { sql } = parts.database
  const lines = new Map<string, OpenLine>()
  const doubtful = new Set<string>()
  const watch = createWatch(parts)

  const close = async (id: string): Promise<void> => {
    const line = lines.get(id)
    lines.delete(id)
    await line?.close()
  }

  const opened = async (line: Line): Promise<OpenLine> => {
    const known = lines.get(line.id)
    if (known) return known
    const fresh = await openLine(parts, line, await takeDelivery(sql, checkpointOf(line, epoch)))
    lines.set(line.id, fresh)
    return fresh
  }

  const provide = async (line: Line): Promise<void> => {
    if (line.acl !== null && !doubtful.has(line.id)) return
    await provideTopics(parts, line, epoch)
    doubtful.delete(line.id)
  }

  /** Its delivery ends, and then its principal's right to read: nothing comes behind what was read last. */
  const withhold = async (line: Line): Promise<false> => {
    await close(line.id)
    await withdrawRights(parts, line, epoch)
    return false
  }

  const clearAway = async (line: Line): Promise<false> => {
    await close(line.id)
    await removeTopics(parts, line)
    watch.forget(line.id)
    doubtful.delete(line.id)
    return false
  }

  const proceed = async (line: Line, reached: bigint): Promise<boolean> => {
    const delivery = await opened(line)
    if (hasReplayed(line, reached)) await sendTo(parts, line, { type: 'CompleteReplay', replay: line.replays })
    const isDue = line.is_behind || line.replay !== line.replays
    if (isDue) await delivery.deliver(line, reached)
    return isDue
  }

  return {
    attend: async (line, reached) => {
      if (line.state === 'deleted') return clearAway(line)
      if (line.state === 'stopped') return withhold(line)
      if (line.state === 'paused') await close(line.id)
      if (!(await watch.isAllowed(line))) return withhold(line)
      await provide(line)
      return line.state === 'active' && proceed(line, reached)
    },
    setAside: async id => {
      doubtful.add(id)
      await close(id)
    },
    open: () => [...lines.keys()],
    closeAll: async () => {
      await Promise.all([...lines.keys()].map(close))
    },
  }
}
