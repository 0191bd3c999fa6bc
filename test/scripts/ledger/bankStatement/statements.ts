import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openStatement } from '../../../../scripts/ledger/bankStatement/statementFile.ts'
import type { StatementLine } from '../../../../scripts/ledger/bankStatement/statementLine.ts'
import { emptyFolder } from '../fixtures.ts'

/** Statements for tests: camt.053 documents, and files of any text. */

export const written = async (content: string | Uint8Array, name = 'statement'): Promise<string> => {
  const path = join(await emptyFolder(), name)
  await writeFile(path, content)
  return path
}

export const listed = async <T>(items: AsyncIterable<T>): Promise<T[]> => {
  const list: T[] = []
  for await (const item of items) list.push(item)
  return list
}

export const linesOf = async (content: string | Uint8Array): Promise<StatementLine[]> => {
  const file = await openStatement(await written(content))
  try {
    return await listed(file.lines())
  } finally {
    await file.close()
  }
}

export type Details = { endToEndId?: string; text?: string; amount?: string; currency?: string; more?: string }

export const txDtls = ({ endToEndId, text, amount, currency = 'USD', more = '' }: Details): string => `
          <TxDtls>
            <Refs>${endToEndId === undefined ? '' : `<EndToEndId>${endToEndId}</EndToEndId>`}</Refs>
            ${amount === undefined ? '' : `<Amt Ccy="${currency}">${amount}</Amt>`}
            ${text === undefined ? '' : `<RmtInf><Ustrd>${text}</Ustrd></RmtInf>`}${more}
          </TxDtls>`

export type Entry = {
  amount: string
  currency?: string
  direction?: 'CRDT' | 'DBIT'
  status?: string
  head?: string
  bankId?: string
  parts?: readonly Details[]
  tail?: string
}

export const ntry = ({ amount, currency = 'USD', direction = 'CRDT', ...entry }: Entry): string => `
      <Ntry>
        <Amt Ccy="${currency}">${amount}</Amt>
        <CdtDbtInd>${direction}</CdtDbtInd>${entry.head ?? ''}
        <Sts>${entry.status ?? 'BOOK'}</Sts>
        <BookgDt><Dt>2026-11-20</Dt></BookgDt>
        ${entry.bankId === undefined ? '' : `<AcctSvcrRef>${entry.bankId}</AcctSvcrRef>`}
        <NtryDtls>${(entry.parts ?? []).map(txDtls).join('')}
        </NtryDtls>${entry.tail ?? ''}
      </Ntry>`

export const camt = (
  entries: readonly string[],
  version = '02',
  id = 'STMT-1',
): string => `<?xml version="1.0" encoding="UTF-8"?>
<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.${version}">
  <BkToCstmrStmt>
    <GrpHdr><MsgId>M-1</MsgId></GrpHdr>
    <Stmt>
      <Id>${id}</Id>
      <Acct>
        <Id><IBAN>DE02120300000000202051</IBAN></Id>
      </Acct>${entries.join('')}
    </Stmt>
  </BkToCstmrStmt>
</Document>
`
