import { leafHash } from '../../../src/evidence/merkle.ts'
import type { Line } from '../../../src/evidence/lines.ts'
import type { Finding } from '../verify/check.ts'
import type { Difference } from './eventsCheck.ts'
import { jsonIn } from './files.ts'
import { type LeafLine, leafLineSchema } from './format.ts'

/**
 * Names a difference between events and leaves for what it is, by looking for both sides of it in the whole of the other file:
 *
 *   the event of the line     the event of the leaf
 *   has this leaf             –                         edited: the same event, with another content
 *   has another leaf          stands in another line    reordered
 *   has another leaf          stands in no line         missing
 *   has an earlier leaf       –                         surplus: the line is there twice
 *   has no leaf               stands in another line    surplus: a line was added
 *   has no leaf               stands in no line         edited
 *   there is no line          stands in no line         truncated
 */

export type Files = { readonly leaves: () => AsyncIterable<Line>; readonly events: () => AsyncIterable<Line> }

const idIn = (line: Line): string | undefined => {
  const json = jsonIn(line)
  const id = 'value' in json ? (json.value as { readonly id?: unknown } | null)?.id : undefined
  return typeof id === 'string' ? id : undefined
}

const leafIn = (line: Line): LeafLine | undefined => {
  const json = jsonIn(line)
  return 'value' in json ? leafLineSchema.safeParse(json.value).data : undefined
}

const leafOf = async ({ leaves }: Files, line: Line): Promise<LeafLine | undefined> => {
  const [hash, id] = [leafHash(line.bytes).toString('hex'), idIn(line)]
  for await (const one of leaves()) {
    const leaf = leafIn(one)
    if (leaf && (leaf.leaf === hash || (id !== undefined && leaf.id === id))) return leaf
  }
  return undefined
}

const lineOf = async ({ events }: Files, leaf: LeafLine, except: Line): Promise<Line | undefined> => {
  for await (const line of events())
    if (line.number !== except.number && (leafHash(line.bytes).toString('hex') === leaf.leaf || idIn(line) === leaf.id))
      return line
  return undefined
}

const countOf = async (lines: AsyncIterable<Line>, isCounted: (line: Line) => boolean): Promise<number> => {
  let count = 0
  for await (const line of lines) if (isCounted(line)) count += 1
  return count
}

const truncated = async (files: Files, { leaf, line }: Difference): Promise<Finding> => {
  const [total, present] = [
    await countOf(files.leaves(), one => leafIn(one)?.withheld === undefined),
    await countOf(files.events(), one => one.flaw !== 'torn'),
  ]
  const torn = line === undefined ? '' : ', within a line'
  return {
    kind: 'truncated',
    detail: `events.jsonl ends after ${present} of ${total} signed events${torn}: first absent is ${nameOf(leaf)}.`,
    place: { line: present + 1, index: leaf.index, event_id: leaf.id ?? null },
  }
}

const nameOf = ({ id, index, position }: LeafLine): string => `event ${id} (index ${index}, position ${position})`

const reasonOf = (line: Line): string => {
  const json = jsonIn(line)
  return 'unreadable' in json ? `: ${json.unreadable}` : ''
}

export const classify = async (files: Files, difference: Difference): Promise<Finding> => {
  const { leaf, line } = difference
  if (line === undefined || line.flaw === 'torn') return truncated(files, difference)
  const place = { line: line.number, index: leaf.index, event_id: leaf.id ?? null, position: leaf.position ?? null }
  const edited = (): Finding => ({
    kind: 'edited',
    detail: `Line ${line.number} of events.jsonl does not match ${nameOf(leaf)} as it was signed${reasonOf(line)}.`,
    place,
  })
  const leafOfLine = await leafOf(files, line)
  if (leafOfLine?.index === leaf.index) return edited()
  // The events before are as they were signed, so that this one stands there twice.
  if (leafOfLine && leafOfLine.index < leaf.index)
    return { kind: 'surplus', detail: `Line ${line.number} of events.jsonl repeats ${nameOf(leafOfLine)}.`, place }
  const lineOfLeaf = await lineOf(files, leaf, line)
  if (lineOfLeaf === undefined && leafOfLine === undefined) return edited()
  if (lineOfLeaf === undefined)
    return { kind: 'missing', detail: `${nameOf(leaf)} is not there; it belongs in line ${line.number}.`, place }
  if (leafOfLine === undefined)
    return { kind: 'surplus', detail: `Line ${line.number} of events.jsonl was never signed.`, place }
  return {
    kind: 'reordered',
    detail: `Line ${line.number} of events.jsonl has ${nameOf(leafOfLine)}; ${nameOf(leaf)}, which belongs there, is in line ${lineOfLeaf.number}.`,
    place: { ...place, other_line: lineOfLeaf.number },
  }
}
