/** The summary of a CPU profile: self time by module and by function. */

export type CallFrame = { readonly functionName: string; readonly url: string; readonly lineNumber: number }

/** The members of a .cpuprofile file that are read here; times in microseconds. */
export type CpuProfile = {
  readonly nodes: readonly { readonly id: number; readonly callFrame: CallFrame }[]
  readonly samples: readonly number[]
  /** The time between the sample before and this one. */
  readonly timeDeltas: readonly number[]
  readonly startTime: number
  readonly endTime: number
}

export type SelfTime = { readonly name: string; readonly ms: number; readonly share: number }
export type ProfileSummary = {
  readonly durationMs: number
  /** All time that the thread was not idle. */
  readonly busyMs: number
  /** Both with the longest first; shares of the busy time. */
  readonly modules: readonly SelfTime[]
  readonly functions: readonly SelfTime[]
}

const IDLE = ['(idle)', '(root)']
const PACKAGE = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//

/** An npm package, a module of Node, a folder below `root`, or the engine's own name such as `(garbage collector)`. */
export const moduleOf = ({ url, functionName }: CallFrame, root: string): string => {
  if (url === '') return functionName.startsWith('(') ? functionName : '(native)'
  const [, name] = PACKAGE.exec(url) ?? []
  if (name !== undefined) return name
  if (url.startsWith('node:')) return url.replace(/^node:(?:internal\/)?([^/]+).*$/, 'node:$1')
  const path = url.startsWith(root) ? url.slice(root.length) : url
  return path.slice(0, Math.max(0, path.lastIndexOf('/'))) || path
}

export const functionOf = (frame: CallFrame, root: string): string => {
  const file = frame.url.slice(frame.url.lastIndexOf('/') + 1)
  const place = file === '' ? '' : ` ${file}:${frame.lineNumber + 1}`
  return `${frame.functionName || '(anonymous)'}${place} in ${moduleOf(frame, root)}`
}

/** A sample lasts until the next one; the last one until the end of the profile. */
const selfTimesUs = ({ samples, timeDeltas, startTime, endTime }: CpuProfile): Map<number, number> => {
  const times = new Map<number, number>()
  let at = startTime + (timeDeltas[0] ?? 0)
  for (const [index, node] of samples.entries()) {
    const next = index + 1 < samples.length ? at + (timeDeltas[index + 1] ?? 0) : Math.max(at, endTime)
    times.set(node, (times.get(node) ?? 0) + next - at)
    at = next
  }
  return times
}

const sorted = (timesUs: ReadonlyMap<string, number>, busyUs: number): SelfTime[] =>
  [...timesUs]
    .map(([name, us]) => ({ name, ms: us / 1000, share: us / busyUs }))
    .toSorted((a, b) => b.ms - a.ms || a.name.localeCompare(b.name))

/** `root` is the URL of the repository's folder, with a slash at its end. */
export const summaryOf = (profile: CpuProfile, root: string): ProfileSummary => {
  const frames = new Map(profile.nodes.map(({ id, callFrame }) => [id, callFrame]))
  const modules = new Map<string, number>()
  const functions = new Map<string, number>()
  let busyUs = 0
  const add = (times: Map<string, number>, name: string, us: number) => times.set(name, (times.get(name) ?? 0) + us)
  for (const [node, us] of selfTimesUs(profile)) {
    const frame = frames.get(node)
    if (frame === undefined || IDLE.includes(frame.functionName)) continue
    busyUs += us
    add(modules, moduleOf(frame, root), us)
    add(functions, functionOf(frame, root), us)
  }
  const durationMs = (profile.endTime - profile.startTime) / 1000
  return { durationMs, busyMs: busyUs / 1000, modules: sorted(modules, busyUs), functions: sorted(functions, busyUs) }
}

const MODULES_SHOWN = 20
const FUNCTIONS_SHOWN = 25

const listed = (times: readonly SelfTime[], shown: number): string[] =>
  times
    .slice(0, shown)
    .map(
      ({ name, ms, share }) => `  ${(100 * share).toFixed(1).padStart(5)} %  ${ms.toFixed(0).padStart(6)} ms  ${name}`,
    )

/** The summary as printed lines below a title. */
export const summaryText = (title: string, { durationMs, busyMs, modules, functions }: ProfileSummary): string =>
  [
    `${title}: busy ${busyMs.toFixed(0)} of ${durationMs.toFixed(0)} ms`,
    ' self time by module',
    ...listed(modules, MODULES_SHOWN),
    ' self time by function',
    ...listed(functions, FUNCTIONS_SHOWN),
  ].join('\n')
