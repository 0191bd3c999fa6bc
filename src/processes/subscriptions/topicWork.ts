import type { SubscriptionDelivery } from '../../feeds/subscriptionCheckpoints.ts'
import { createRoundRobin } from '../fairScheduling.ts'

/**
 * Runs the creation and deletion of topics and Kafka ACLs beside the deliveries, because a broker takes seconds for it:
 * one at a time for a tenant, and for up to AT_ONCE_MAX tenants at once.
 *
 *   wanted ─▶ running ─▶ ended ──▶ removed by beforeRowsAreRead, since the rows read next show the result
 *      │            └──▶ failed ─▶ thrown by the next mayChangeRows of the subscription
 *      └─▶ dropped, or replaced by newer work of the subscription
 */

const AT_ONCE_MAX = 4

type Subscription = Pick<SubscriptionDelivery, 'id' | 'tenant_id'>
type Work = () => Promise<void>
type Task = Subscription & { readonly work: Work }

/** `onEnded`: a work has ended or failed. Long because its functions share the state of one queue. */
export const createTopicWork = (onEnded: () => void = () => undefined) => {
  const tasks = new Map<string, Task>()
  const running = new Map<string, { readonly task: Task; readonly done: Promise<void> }>()
  const ended = new Set<string>()
  const failures = new Map<string, unknown>()
  const roundRobin = createRoundRobin<Task>(({ tenant_id }) => tenant_id)
  let isStopped = false

  const next = (): Task | undefined => {
    const busy = new Set([...running.values()].map(({ task }) => task.tenant_id))
    return roundRobin.inOrder([...tasks.values()]).find(({ tenant_id }) => !busy.has(tenant_id))
  }

  const beginDue = (): void => {
    while (!isStopped && running.size < AT_ONCE_MAX) {
      const task = next()
      if (task === undefined) return
      tasks.delete(task.id)
      roundRobin.hadTurn(task)
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
    onEnded()
  }

  return {
    /** Replaces work of the subscription that has not begun. */
    want: ({ id, tenant_id }: Subscription, work: Work): void => {
      const task = { id, tenant_id, work }
      tasks.set(id, task)
      roundRobin.joins(task)
      beginDue()
    },
    /** Drops work of the subscription that has not begun. */
    drop: (id: string): void => void tasks.delete(id),
    /** Whether a row may be older than unfinished or just ended work. Throws the error of failed work, once. */
    mayChangeRows: (id: string): boolean => {
      if (failures.has(id)) {
        const failure = failures.get(id)
        failures.delete(id)
        throw failure
      }
      return running.has(id) || ended.has(id)
    },
    /** Must be called just before rows are read: they show all work that has ended by now. */
    beforeRowsAreRead: (): void => ended.clear(),
    /** Begins nothing more. Resolves when nothing is in progress. */
    stop: async (): Promise<void> => {
      isStopped = true
      tasks.clear()
      await Promise.all([...running.values()].map(({ done }) => done))
    },
  }
}
