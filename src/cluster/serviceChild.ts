import type { ChildProcess } from '../childProcesses/childProcess.ts'
import type { ParentOperations } from '../childProcesses/protocol.ts'
import { type Child, superviseChild } from '../childProcesses/supervisor.ts'
import type { Operations } from '../childProcesses/channel.ts'
import type { Role } from '../settings/config.ts'
import { createReceiver, type Receiver } from './handover.ts'
import type { ChildSettings, PrimaryOperations, ServiceOperations } from './protocol.ts'
import type { LimitOperations, SharedLimits } from './sharedLimits.ts'

const MODULE = new URL('./child.ts', import.meta.url)

export type Plan = { readonly name: string; readonly roles: readonly Role[] }

export type ServiceChild = Child<ServiceOperations> & { readonly isApi: boolean; readonly receiver: () => Receiver }

export type ServiceChildOptions = {
  readonly settings: Promise<Omit<ChildSettings, 'name' | 'roles'>>
  readonly limits: SharedLimits
  /** The names of the processes that do not answer, which each process shows at /readyz. */
  readonly notAnswering: () => readonly string[]
  /** A process begins to serve, or is another one than before. */
  readonly onChange: () => void
  readonly onSilent: (name: string) => void
  readonly onEnded: (plan: Plan, how: string, pauseMs: number) => void
  readonly onFailed: (reason: Error) => void
  /** What a process reports or asks for that is not of itself. */
  readonly reports: Pick<PrimaryOperations, 'waiting' | 'outage' | 'refused' | 'reportFeeds' | 'allMetrics'>
}

type OwnOperations = Omit<
  PrimaryOperations,
  keyof (ParentOperations & LimitOperations & ServiceChildOptions['reports'])
>

const handoverOperations = (receiver: Receiver, onChange: () => void): OwnOperations => ({
  acknowledge: receiver.acknowledge,
  listening: () => {
    receiver.serve()
    onChange()
  },
  ending: receiver.giveNoMore,
})

export const startServiceChild = (plan: Plan, options: ServiceChildOptions): ServiceChild => {
  const { settings, limits, notAnswering, onChange, onSilent, onEnded, onFailed, reports } = options
  let receiver: Receiver
  const open = (child: ChildProcess<ServiceOperations>): Operations => {
    receiver = createReceiver(child)
    const { operations, releaseAll } = limits.openFor()
    void child.ended.then(releaseAll)
    void child.ready.then(onChange)
    settings.then(common => child.call('start', { ...common, ...plan })).catch(() => undefined)
    return { ...operations, ...reports, ...handoverOperations(receiver, onChange) }
  }
  const child = superviseChild<ServiceOperations>({
    ...{ name: plan.name, module: MODULE, open, onAnswer: onChange, onGivenUp: onFailed },
    ask: call => call('ping', notAnswering()),
    onSilent: () => onSilent(plan.name),
    onEnded: (how, pauseMs) => onEnded(plan, how, pauseMs),
  })
  const stop: ServiceChild['stop'] = graceMs => {
    receiver.giveNoMore()
    return child.stop(graceMs)
  }
  return { ...child, stop, isApi: plan.roles.includes('api'), receiver: () => receiver }
}
