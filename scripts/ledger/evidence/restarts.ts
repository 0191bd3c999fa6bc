import { type Head, type HeadRestart, isSigned, type PublicKeys } from '../../../src/evidence/heads.ts'
import type { Line } from '../../../src/evidence/lines.ts'
import { headIn } from './headsCheck.ts'

/** By the generations that begin with them. */
export type Restarts = ReadonlyMap<number, HeadRestart>

/** The restarts of heads whose signatures fit. */
export const restartsIn = async (lines: AsyncIterable<Line>, keys: PublicKeys): Promise<Restarts> => {
  const restarts = new Map<number, HeadRestart>()
  for await (const line of lines) {
    const head = headIn(line)
    if ('unreadable' in head || head.restart === undefined) continue
    if (!restarts.has(head.generation) && isSigned(head, keys)) restarts.set(head.generation, head.restart)
  }
  return restarts
}

/** The heads of a generation bind the generations after it up to what each of their restarts has kept. */
export const keptOf = (generation: number, restarts: Restarts): number =>
  Math.min(...[...restarts].map(([of, { kept_size }]) => (of > generation ? kept_size : Number.MAX_SAFE_INTEGER)))

export const generationsOf = ({ generation }: Head, restarts: Restarts): readonly number[] => [
  ...new Set([1, ...restarts.keys(), generation]),
]

/** Whether the tree still has to agree with the head. */
export const isBound = ({ generation, tree_size }: Head, restarts: Restarts): boolean =>
  tree_size <= keptOf(generation, restarts)

export async function* boundBy(heads: AsyncIterable<Head>, restarts: Restarts): AsyncGenerator<Head> {
  for await (const head of heads) if (isBound(head, restarts)) yield head
}

export const sentencesOn = (restarts: Restarts): string =>
  [...restarts]
    .map(
      ([generation, { kept_size, abandoned_size, audit_record, accepted }]) =>
        ` Generation ${generation} begins with ${kept_size >= abandoned_size ? 'a confirmation: nothing was lost' : `an accepted loss: ${kept_size} of ${abandoned_size} signed events were kept`} ` +
        `(audit record ${audit_record}, by ${accepted.by}: ${accepted.reason}).`,
    )
    .join('')
