import { type CallFrame, functionOf } from './profileSummary.ts'

/** The summary of sampled allocations: bytes by function. */

type HeapNode = { readonly callFrame: CallFrame; readonly selfSize: number; readonly children: readonly HeapNode[] }

/** The members of a .heapprofile file that are read here; sizes in bytes, estimated from samples. */
export type HeapProfile = { readonly head: HeapNode }

export type Allocations = {
  readonly bytes: number
  /** Those that allocate most first. */
  readonly functions: readonly { readonly name: string; readonly bytes: number }[]
}

/** `root` is the URL of the repository's folder, with a slash at its end. */
export const allocationsOf = ({ head }: HeapProfile, root: string): Allocations => {
  const functions = new Map<string, number>()
  const add = ({ callFrame, selfSize, children }: HeapNode): void => {
    const name = functionOf(callFrame, root)
    if (selfSize > 0) functions.set(name, (functions.get(name) ?? 0) + selfSize)
    for (const child of children) add(child)
  }
  add(head)
  const sorted = [...functions]
    .map(([name, bytes]) => ({ name, bytes }))
    .toSorted((a, b) => b.bytes - a.bytes || a.name.localeCompare(b.name))
  return { bytes: sorted.reduce((sum, { bytes }) => sum + bytes, 0), functions: sorted }
}
