import type { SubscriptionDelivery } from '../../feeds/subscriptionCheckpoints.ts'
import { createTurns } from './turnsByTenant.ts'

/**
 * Topics are made and removed, and rights granted and taken away, beside the deliveries: a broker takes seconds for it.
 * Work for one subscription is done one after the other, for one tenant one at a time, and for several tenants at once.
 *
 *   wanted ─▶ under way ─▶ ended ─▶ gone, when a look at the database has begun that shows what was done
 *                             └───▶ failed: told to whoever asks for the subscription next
 */

const AT_ONCE_MAX = 4

type Place = Pick<SubscriptionDelivery, 'id' | 'tenant_id'>
type Work = () => Promise<void>
type Task = Place & { readonly work: Work }

export type TopicWork = {
  /** Has it done, in place of what was wanted for the subscription before and has not begun. */
  readonly want: (line: Place, work: Work) => void
  /** Drops work that was wanted for the subscription and has not begun. */
  readonly forget: (id: string) => void
  /** Whether a row that was read may be older than what is being done, or was just done. Throws, once, what that failed with. */
  readonly isUnderWay: (id: string) => boolean
  /** Says that rows are read from now on: they show all work that has ended by now. */
  readonly lookBegins: () => void
  /** Begins nothing more. Resolves when nothing is under way. */
  readonly stop: () => Promise<void>
}

export const createTopicWork = (): TopicWork => {
  const wanted = new Map<string, Task>()
  const running = new Map<string, { readonly task: Task; readonly done: Promise<void> }>()
  const ended = new Set<string>()
  const failures = new Map<string, unknown>()
  const turns = createTurns<Task>(({ tenant_id }) => tenant_id)
  let isStopped = false

  const next = (): Task | undefined => {
    const busy = new Set([...running.values()].map(({ task }) => task.tenant_id))
    return turns.inOrder([...wanted.values()]).find(({ tenant_id }) => !busy.has(tenant_id))
  }

  const beginDue = (): void => {
    while (!isStopped && running.size < AT_ONCE_MAX) {
      const task = next()
      if (task === undefined) return
      wanted.delete(task.id)
      turns.taken(task)
      running.set(task.id, { task, done: run(task) })
    }
  }

  const run = async (task: Task): Promise<void> => {
    await Promise.resolve()
      .then(task.work)
      .then(
        () => ended.add(task.id),
        (error: unknown) => failures.set(task.id, error),
      )
    running.delete(task.id)
    beginDue()
  }

  return {
    want: ({ id, tenant_id }, work) => {
      const task = { id, tenant_id, work }
      wanted.set(id, task)
      turns.joins(task)
      beginDue()
    },
    forget: id => void wanted.delete(id),
    isUnderWay: id => {
      if (failures.has(id)) {
        const failure = failures.get(id)
        failures.delete(id)
        throw failure
      }
      return running.has(id) || ended.has(id)
    },
    lookBegins: () => ended.clear(),
    stop: async () => {
      isStopped = true
      wanted.clear()
      await Promise.all([...running.values()].map(({ done }) => done))
    },
  }
}
