import { counted, print, printJson } from '../print.ts'
import { aligned } from '../table.ts'
import type { Copy } from './copy.ts'
import type { Entry } from './fact.ts'
import type { TopicProof, Verified } from './verify.ts'

/** The results of `consume` and `consume verify`, on stdout. */

const summaryOf = ({ counts: { taken, repeated, late }, state }: Copy): string => {
  const place = state().from === 'http' ? `, up to position ${state().position}` : ''
  const disorder = late === 0 ? '' : `, ${late} behind a later one of their key`
  return `${counted(taken, 'new fact')}, ${repeated} already present${disorder}${place}`
}

export const printConsumed = (copy: Copy, folder: string, json: boolean): void => {
  const { from, topics, position } = copy.state()
  if (json) printJson({ copy: folder, from, topics, position: from === 'http' ? position : null, ...copy.counts })
  else print(`${summaryOf(copy)}, in ${folder}`)
}

const describe = ({ type, subject, position, id, tenantid }: Entry): string =>
  `${type} for ${subject} at position ${position}, tenant ${tenantid}, id ${id}`

const cellsOf = ({ ranges, topic, unproved, ...proof }: TopicProof): readonly string[] => {
  const had = ranges.reduce((sum, range) => sum + range.had.count, 0)
  const total = ranges.reduce((sum, range) => sum + range.wanted.count, 0)
  const isSound = ranges.every(({ agrees }) => agrees) && proof.findings.length === 0
  const from = ranges[0]?.from ?? 0n
  const to = ranges.at(-1)?.to ?? 0n
  const sealed = ranges.length > 1 ? ` in ${ranges.length} manifests` : ''
  const beside = unproved === 0 ? '' : `, ${unproved} beside them not proved`
  return [isSound ? 'ok' : 'FINDING', topic, `${had} of ${total}`, `positions ${from} to ${to}${sealed}${beside}`]
}

const printProblems = ({ topic, ranges, missing, surplus, findings }: TopicProof): void => {
  for (const finding of findings) print(`${topic}: ${finding}`)
  for (const { from, to, had, wanted } of ranges.filter(({ agrees }) => !agrees))
    print(
      `${topic}: the ledger has ${counted(wanted.count, 'fact')} at positions ${from} to ${to} (SHA-256 ${wanted.sha256}), and the copy ${had.count}.`,
    )
  for (const entry of missing) print(`missing: ${describe(entry)}`)
  for (const entry of surplus) print(`surplus (${entry.why}): ${describe(entry)}`)
}

export const printVerified = (verified: Verified, json: boolean): void => {
  if (json) return printJson(verified)
  for (const line of aligned(verified.topics.map(cellsOf))) print(line)
  for (const proof of verified.topics) printProblems(proof)
  print(verified.ok ? 'The copy is complete.' : 'The copy is incomplete.')
}
