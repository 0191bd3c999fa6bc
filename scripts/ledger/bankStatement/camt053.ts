import { dateIn, dateOf, type LineKind, minorUnitsOf, type StatementLine, StatementError } from './statementLine.ts'
import { childOf, childrenOf, type Element, readXml, textAt } from './xmlElements.ts'

const NAMESPACE = /^urn:iso:std:iso:20022:tech:xsd:camt\.053\.\d{3}\.\d{2}$/
const STATEMENT = 'Document/BkToCstmrStmt/Stmt'
const MESSAGE_TIME = 'Document/BkToCstmrStmt/GrpHdr/CreDtTm'
const ENTRY = `${STATEMENT}/Ntry`
const INSIDE_HEADER_OR_ENTRY = new RegExp(`^${STATEMENT}/(?:Ntry|Acct)/`)

/** Values of a bank for an absent reference. */
const NO_REFERENCE = /^(?:not ?provided|nonref|none)$/i
/** Separates lists of different length in an identity. */
const SEPARATOR = '|'

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

const entryPaymentOf = (details: Element) => {
  const amount = childOf(details, 'Amt') ?? childOf(details, 'AmtDtls', 'TxAmt', 'Amt')
  return {
    line: details.line,
    amount: amount && amountOf(amount),
    direction: textAt(details, 'CdtDbtInd'),
    isReturn: childOf(details, 'RtrInf') !== undefined,
    charges: childrenOf(details, 'Chrgs'),
    references: textsAt(details, REFERENCES).filter(text => !NO_REFERENCE.test(text)),
    texts: textsAt(details, TEXTS),
    ids: textsAt(details, IDS),
  }
}
type EntryPayment = ReturnType<typeof entryPaymentOf>

/** The status is a text in old versions, and has a code from version 8 on. */
const isBooked = (entry: Element): boolean =>
  (textAt(entry, 'Sts', 'Cd') ?? textAt(entry, 'Sts', 'Prtry') ?? required(entry, 'Sts')) === 'BOOK'

const kindOf = (entry: Element, payment: EntryPayment): LineKind => {
  const direction = payment.direction ?? required(entry, 'CdtDbtInd')
  if (direction !== 'CRDT' && direction !== 'DBIT')
    throw new StatementError(payment.line, `CdtDbtInd is ${JSON.stringify(direction)}, neither CRDT nor DBIT.`)
  if (!isBooked(entry)) return 'not_booked'
  if (['true', '1'].includes(textAt(entry, 'RvslInd') ?? 'false') || payment.isReturn) return 'reversal'
  return direction === 'CRDT' ? 'credit' : 'debit'
}

/** The amounts of charges: their total, or each of them directly (in version 2) or in a record. */
const chargedIn = (charges: Element): readonly Element[] => {
  const total = childOf(charges, 'TtlChrgsAndTaxAmt')
  return total === undefined ? [...childrenOf(charges, 'Amt'), ...childrenOf(charges, 'Rcrd', 'Amt')] : [total]
}

/** The sum of all charges; undefined if one has no amount, or one in another currency. */
const chargesOf = (all: readonly Element[], currency: string): bigint | undefined => {
  const amounts = all.map(chargedIn)
  if (amounts.some(({ length }) => length === 0)) return undefined
  if (amounts.flat().some(({ attributes }) => attributes.get('Ccy') !== currency)) return undefined
  return amounts.flat().reduce((total, element) => total + amountOf(element).amount, 0n)
}

/**
 * Throws a StatementError unless the payments of the entry add up to its amount, since money that is not in the entry
 * must settle nothing. Payments in the other direction are subtracted, and charges may make up the difference. An entry
 * with a payment or a charge in another currency, whose rate is not known, or with a charge without an amount is not
 * checked.
 */
const checkSum = (entry: Element, payments: readonly EntryPayment[]): void => {
  const whole = amountOf(childOf(entry, 'Amt') ?? entry)
  const direction = required(entry, 'CdtDbtInd')
  const amounts = payments.map(({ line, amount, direction: own = direction }) => {
    if (amount === undefined) throw new StatementError(line, 'A payment of an entry with several has no amount.')
    return { currency: amount.currency, amount: own === direction ? amount.amount : -amount.amount }
  })
  const charged = [...childrenOf(entry, 'Chrgs'), ...payments.flatMap(({ charges }) => charges)]
  const charges = chargesOf(charged, whole.currency)
  if (charges === undefined || amounts.some(({ currency }) => currency !== whole.currency)) return
  const difference = amounts.reduce((sum, { amount }) => sum + amount, 0n) - whole.amount
  if (difference > charges || -difference > charges)
    throw new StatementError(entry.line, 'The payments of the entry do not add up to its amount.')
}

const dayOf = (element: Element, name: string): string | undefined =>
  textAt(element, name, 'Dt') ?? textAt(element, name, 'DtTm')

/** That of the booking, of its value, or of its statement; entries that are not booked need none. */
const bookedOnOf = (entry: Element, { createdOn }: Statement): string | undefined => {
  const text = dayOf(entry, 'BookgDt') ?? dayOf(entry, 'ValDt') ?? createdOn
  if (!isBooked(entry)) return text && dateIn(text)
  if (text === undefined) throw new StatementError(entry.line, 'Ntry has no BookgDt, and its statement no CreDtTm.')
  return dateOf(text, entry.line)
}

type Statement = { id: string; account: string; createdOn: string | undefined }

const linesOf = (entry: Element, details: readonly EntryPayment[], statement: Statement): readonly StatementLine[] => {
  const { id, account } = statement
  const amount = childOf(entry, 'Amt')
  if (amount === undefined) throw new StatementError(entry.line, 'Ntry has no Amt.')
  const whole = amountOf(amount)
  if (details.length > 1 && isBooked(entry)) checkSum(entry, details)
  const isBatch = details.length > 1
  const bookedOn = bookedOnOf(entry, statement)
  // The day of a statement does not identify a booking, which may be in several statements.
  const ownDay = dayOf(entry, 'BookgDt') === undefined && dayOf(entry, 'ValDt') === undefined ? undefined : bookedOn
  const bankId = textAt(entry, 'AcctSvcrRef')
  // A booking without an id of the bank is identified by its statement; with one it may be in several statements.
  const origin = bankId === undefined ? ['statement', id, textAt(entry, 'NtryRef') ?? ''] : ['bank', bankId]
  const withoutDetails = entryPaymentOf({ ...entry, children: [] })
  return (details.length === 0 ? [withoutDetails] : details).map(payment => {
    // The amount that was booked is the entry's; that of its only payment may be in the payer's currency.
    const booked = isBatch && payment.amount !== undefined ? payment.amount : whole
    const kind = kindOf(entry, payment)
    const texts = isBatch ? payment.texts : [...payment.texts, ...textsAt(entry, ['AddtlNtryInf'])]
    const content = [kind, ownDay ?? '', booked.amount.toString(), booked.currency]
    const identity = [
      account,
      ...origin,
      ...content,
      ...payment.ids,
      SEPARATOR,
      ...payment.references,
      SEPARATOR,
      ...texts,
    ]
    return { line: payment.line, kind, bookedOn, ...booked, references: payment.references, texts, identity }
  })
}

/** Reads the bookings in their order. Throws a StatementError with the line for a file that is no sound camt.053. */
export const readCamt053 = async function* (chunks: AsyncIterable<string>): AsyncGenerator<StatementLine> {
  const ready: StatementLine[] = []
  let messageCreatedOn: string | undefined
  let statement: Statement = { id: '', account: '', createdOn: undefined }
  let details: EntryPayment[] = []
  const onEnd = (element: Element, parents: readonly string[]): boolean => {
    const path = [...parents, element.name].join('/')
    if (path === MESSAGE_TIME) messageCreatedOn = element.text
    if (path === `${STATEMENT}/Id`) statement = { id: element.text, account: '', createdOn: messageCreatedOn }
    if (path === `${STATEMENT}/CreDtTm`) statement.createdOn = element.text
    if (path === `${STATEMENT}/Acct`)
      statement.account = textAt(element, 'Id', 'IBAN') ?? textAt(element, 'Id', 'Othr', 'Id') ?? ''
    if (path === `${ENTRY}/NtryDtls/TxDtls`) {
      details.push(entryPaymentOf(element))
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
