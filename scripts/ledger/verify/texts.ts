import { countLost, REFERRING, type Referring } from '../../../src/personalTexts/lostTexts.ts'
import { relationExists } from '../../../src/schema/existingRelations.ts'
import { counted } from '../print.ts'
import { type Finding, nothingCompared, type Outcome, type VerifyCheck, type Verified } from './check.ts'

/**
 * Every reference of an order or a payment to a personal text has its text, or the text was erased. The rows are read in pages,
 * in the order of their ids, so an interrupted check continues after the last page that it has read.
 */

const ROWS_PER_PAGE = 5_000
const TENANTS_NAMED = 10

const findLost = async (
  { database: { sql }, signal, texts }: Verified,
  of: Referring,
  advance: (references: number) => void,
): Promise<readonly Finding[]> => {
  const { table, member } = of
  const tenants = new Set<string>()
  let [references, lost, example] = [0, 0, '']
  for (let after = texts.after.startsWith(`${of.prefix}_`) ? texts.after : ''; ; ) {
    const page = await countLost(sql, of, { after, limit: ROWS_PER_PAGE })
    if (page.last === null) break
    references += page.references
    lost += page.lost
    example ||= page.example ?? ''
    for (const tenant of page.tenants ?? []) tenants.add(tenant)
    advance(page.references)
    after = texts.after = page.last
    signal.throwIfAborted()
  }
  if (lost === 0) return []
  const named = [...tenants].slice(0, TENANTS_NAMED).join(', ')
  const more = tenants.size > TENANTS_NAMED ? ` and ${tenants.size - TENANTS_NAMED} more` : ''
  const detail =
    `Of ${counted(references, 'reference')} in ${table}.${member}, ${lost} have no text, and it was not erased: in the tenants ` +
    `${named}${more}, such as that of ${example}. Postgres was restored from an older dump: follow drill 5 of ` +
    'scripts/ledger/DISASTER.md.'
  return [{ kind: 'text_lost', detail, place: { table, member, references, lost, example } }]
}

export const textsCheck: VerifyCheck = {
  name: 'texts',
  run: async (verified): Promise<Outcome> => {
    for (const relation of ['personal_texts', ...REFERRING.map(({ table }) => table)])
      if (!(await relationExists(verified.database.sql, relation)))
        return nothingCompared(verified, 'No service has run on this database.')
    const progress = verified.startProgress('texts', 'references')
    let references = 0
    const advance = (count: number): void => {
      references += count
      progress.advance(count)
    }
    // The rest of an interrupted run begins in the table of its last row.
    const first = Math.max(
      0,
      REFERRING.findIndex(({ prefix }) => verified.texts.after.startsWith(`${prefix}_`)),
    )
    const findings: Finding[] = []
    try {
      for (const of of REFERRING.slice(first)) findings.push(...(await findLost(verified, of, advance)))
    } finally {
      progress.end()
    }
    const detail = `Each of ${counted(references, 'reference')} to a personal text has it, or it was erased.`
    return { detail, findings, counts: { references } }
  },
}
