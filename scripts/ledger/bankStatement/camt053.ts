import { dateOf, type LineKind, minorUnitsOf, type StatementLine, StatementError } from './statementLine.ts'
import { childOf, childrenOf, type Element, readXml, textAt } from './xmlElements.ts'

/** Bank statements in the format camt.053 of ISO 20022, in any of its versions. */

const NAMESPACE = /^urn:iso:std:iso:20022:tech:xsd:camt\.053\.\d{3}\.\d{2}$/
const STATEMENT = 'Document/BkToCstmrStmt/Stmt'
const ENTRY = `${STATEMENT}/Ntry`
const INSIDE_HEADER_OR_ENTRY = new RegExp(`^${STATEMENT}/(?:Ntry|Acct)/`)

/** The values by which banks say that there is no reference. */
const NO_REFERENCE = /^(?:not ?provided|nonref|none)$/i
/** Separates the parts of an identity that differ in number. */
const PART = '|'

const refuseOtherDocuments = ({ name, line }: Element, namespace: string): void => {
  if (name === 'Document' && NAMESPACE.test(namespace)) return
  throw new StatementError(line, `This is no camt.053: its first element is ${name} of ${JSON.stringify(namespace)}.`)
}

/** The text at the path. Throws a StatementError without one. */
const required = (element: Element, ...path: readonly string[]): string => {
  const text = textAt(element, ...path)
  if (text === undefined) throw new StatementError(element.line, `${element.name} has no ${path.join('/')}.`)
  return text
}

const amountOf = (element: Element): { amount: bigint; currency: string } => {
  const currency = element.attributes.get('Ccy') ?? ''
  return { amount: minorUnitsOf(element.text, currency, element.line), currency }
}

/** The texts of all elements at these paths. */
const textsAt = (element: Element, paths: readonly string[]): readonly string[] =>
  paths.flatMap(path => childrenOf(element, ...path.split('/')).flatMap(({ text }) => (text === '' ? [] : [text])))

const REFERENCES = ['Refs/EndToEndId', 'RmtInf/Strd/CdtrRefInf/Ref', 'Refs/InstrId', 'Refs/TxId']
const TEXTS = ['RmtInf/Ustrd', 'RmtInf/Strd/AddtlRmtInf', 'AddtlTxInf']
const IDS = [
  'Refs/AcctSvcrRef',
  'Refs/MsgId',
  'Refs/PmtInfId',
  'Refs/UETR',
  'Refs/MndtId',
  'Refs/ClrSysRef',
  'RltdDts/TxDtTm',
]

/** One payment in an entry. */
type Part = {
  readonly line: number
  readonly amount: { readonly amount: bigint; readonly currency: string } | undefined
  readonly direction: string | undefined
  readonly isReturn: boolean
  readonly references: readonly string[]
  readonly texts: readonly string[]
  readonly ids: readonly string[]
}

const partOf = (details: Element): Part => {
  const amount = childOf(details, 'Amt') ?? childOf(details, 'AmtDtls', 'TxAmt', 'Amt')
  return {
    line: details.line,
    amount: amount && amountOf(amount),
    direction: textAt(details, 'CdtDbtInd'),
    isReturn: childOf(details, 'RtrInf') !== undefined,
    references: textsAt(details, REFERENCES).filter(text => !NO_REFERENCE.test(text)),
    texts: textsAt(details, TEXTS),
    ids: textsAt(details, IDS),
  }
}

const kindOf = (entry: Element, part: Part): LineKind => {
  // The status is a text in old versions, and has a code from version 8 on.
  const status = textAt(entry, 'Sts', 'Cd') ?? textAt(entry, 'Sts', 'Prtry') ?? required(entry, 'Sts')
  const direction = part.direction ?? required(entry, 'CdtDbtInd')
  if (direction !== 'CRDT' && direction !== 'DBIT')
    throw new StatementError(part.line, `CdtDbtInd is ${JSON.stringify(direction)}, neither CRDT nor DBIT.`)
  if (status !== 'BOOK') return 'not_booked'
  if (['true', '1'].includes(textAt(entry, 'RvslInd') ?? 'false') || part.isReturn) return 'reversal'
  return direction === 'CRDT' ? 'credit' : 'debit'
}

/** Money that is not in the entry must settle nothing, so the parts must have its amount; charges may make up the difference. */
const checkSum = (entry: Element, parts: readonly Part[]): void => {
  const whole = amountOf(childOf(entry, 'Amt') ?? entry)
  const amounts = parts.map(({ line, amount }) => {
    if (amount === undefined) throw new StatementError(line, 'A payment of an entry with several has no amount.')
    return amount
  })
  const direction = required(entry, 'CdtDbtInd')
  const isComparable =
    childOf(entry, 'Chrgs') === undefined &&
    amounts.every(({ currency }) => currency === whole.currency) &&
    parts.every(part => (part.direction ?? direction) === direction)
  const sum = amounts.reduce((total, { amount }) => total + amount, 0n)
  if (isComparable && sum !== whole.amount)
    throw new StatementError(entry.line, 'The payments of the entry do not add up to its amount.')
}

type Statement = { id: string; account: string }

const linesOf = (entry: Element, details: readonly Part[], { id, account }: Statement): readonly StatementLine[] => {
  const amount = childOf(entry, 'Amt')
  if (amount === undefined) throw new StatementError(entry.line, 'Ntry has no Amt.')
  const whole = amountOf(amount)
  if (details.length > 1) checkSum(entry, details)
  const isBatch = details.length > 1
  const bookedOn = dateOf(textAt(entry, 'BookgDt', 'Dt') ?? required(entry, 'BookgDt', 'DtTm'), entry.line)
  const bankId = textAt(entry, 'AcctSvcrRef')
  // A booking without an id of the bank is known by its statement; with one it may be in several statements.
  const origin = bankId === undefined ? ['statement', id, textAt(entry, 'NtryRef') ?? ''] : ['bank', bankId]
  const alone: Part = { ...NO_DETAILS, line: entry.line }
  return (details.length === 0 ? [alone] : details).map(part => {
    // The amount that was booked is the entry's; that of its only payment may be in the payer's currency.
    const booked = isBatch && part.amount !== undefined ? part.amount : whole
    const kind = kindOf(entry, part)
    const texts = isBatch ? part.texts : [...part.texts, ...textsAt(entry, ['AddtlNtryInf'])]
    const content = [kind, bookedOn, booked.amount.toString(), booked.currency]
    const identity = [account, ...origin, ...content, ...part.ids, PART, ...part.references, PART, ...texts]
    return { line: part.line, kind, bookedOn, ...booked, references: part.references, texts, identity }
  })
}

const NO_DETAILS = {
  amount: undefined,
  direction: undefined,
  isReturn: false,
  references: [],
  texts: [],
  ids: [],
} as const

/** Reads the bookings in their order. Throws a StatementError with the line for a file that is no sound camt.053. */
export const readCamt053 = async function* (chunks: AsyncIterable<string>): AsyncGenerator<StatementLine> {
  const ready: StatementLine[] = []
  let statement: Statement = { id: '', account: '' }
  let details: Part[] = []
  const onEnd = (element: Element, parents: readonly string[]): boolean => {
    const path = [...parents, element.name].join('/')
    if (path === `${STATEMENT}/Id`) statement = { id: element.text, account: '' }
    if (path === `${STATEMENT}/Acct`) statement.account = accountOf(element)
    if (path === `${ENTRY}/NtryDtls/TxDtls`) {
      details.push(partOf(element))
      return false
    }
    if (path === ENTRY) {
      ready.push(...linesOf(element, details, statement))
      details = []
    }
    return INSIDE_HEADER_OR_ENTRY.test(path)
  }
  for await (const _ of readXml(chunks, { onRoot: refuseOtherDocuments, onEnd })) yield* ready.splice(0)
}

const accountOf = (account: Element): string =>
  textAt(account, 'Id', 'IBAN') ?? textAt(account, 'Id', 'Othr', 'Id') ?? ''
