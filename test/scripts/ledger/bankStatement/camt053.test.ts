import { expect } from 'chai'
import { lineIdOf } from '../../../../scripts/ledger/bankStatement/statementLine.ts'
import { namesInTexts } from '../../../../scripts/ledger/bankStatement/reconcile.ts'
import { tidyUp } from '../fixtures.ts'
import { rejectionOf } from '../../../support/rejection.ts'
import { camt, linesOf, ntry } from './statements.ts'

const BOOKING_DATE = /<BookgDt>.*<\/BookgDt>/
const OUT = '<CdtDbtInd>DBIT</CdtDbtInd>'
const charged = (amount: string, currency = 'USD'): string =>
  `<Chrgs><Rcrd><Amt Ccy="${currency}">${amount}</Amt></Rcrd></Chrgs>`

describe('bank statements in camt.053', () => {
  after(tidyUp)

  const refusal = async (content: string): Promise<string> => (await rejectionOf(linesOf(content))).message
  const one = async (entry: string, version = '02') => {
    const [line, ...others] = await linesOf(camt([entry], version))
    if (line === undefined || others.length > 0) throw new Error('One line.')
    return line
  }

  it('have a line for each entry, with its line number, amount, date and references', async () => {
    const parts = [{ endToEndId: 'R-1', text: 'for\n  R-1' }]
    const { identity: _, ...line } = await one(ntry({ amount: '10.50', parts }))
    expect(line).to.deep.equal({
      line: 17,
      kind: 'credit',
      bookedOn: '2026-11-20',
      amount: 1050n,
      currency: 'USD',
      references: ['R-1'],
      texts: ['for R-1'],
    })
  })

  it('are read in each version, with statuses as texts and as codes, dates with times, and prefixes', async () => {
    const entry = ntry({ amount: '1', status: '<Cd>BOOK</Cd>', parts: [{ endToEndId: 'R-1' }] }).replace(
      '<Dt>2026-11-20</Dt>',
      '<DtTm>2026-11-20T23:30:00+01:00</DtTm>',
    )
    for (const version of ['02', '04', '08', '13']) {
      const { kind, bookedOn } = await one(entry, version)
      expect([kind, bookedOn]).to.deep.equal(['credit', '2026-11-20'])
    }
    const prefixed = camt([entry])
      .replaceAll(/<(\/?)([A-Z])/g, '<$1c:$2')
      .replace('xmlns=', 'xmlns:c=')
    expect((await linesOf(prefixed))[0]?.references).to.deep.equal(['R-1'])
  })

  it('have a line for each payment of a batch, with its own amount, references and id', async () => {
    const parts = [
      { text: 'RENT R-1', amount: '4.00' },
      { text: 'RENT R-2', amount: '4.00' },
      { endToEndId: 'NOTPROVIDED', more: '<AmtDtls><TxAmt><Amt Ccy="USD">2.50</Amt></TxAmt></AmtDtls>' },
    ]
    const lines = await linesOf(
      camt([ntry({ amount: '10.50', bankId: 'B-1', parts, tail: '<AddtlNtryInf>BATCH R-9</AddtlNtryInf>' })]),
    )
    expect(lines.map(({ amount, texts, references }) => [amount, texts, references])).to.deep.equal([
      [400n, ['RENT R-1'], []],
      [400n, ['RENT R-2'], []],
      [250n, [], []],
    ])
    expect(new Set(lines.map(line => lineIdOf(line, 0))).size).to.equal(3)
  })

  it('take the booked amount of an entry with one payment in another currency', async () => {
    const { amount, currency } = await one(
      ntry({ amount: '9.20', parts: [{ endToEndId: 'R', amount: '10', currency: 'EUR' }] }),
    )
    expect([amount, currency]).to.deep.equal([920n, 'USD'])
  })

  it('have the date of the booking in any time zone, else of its value, else of its statement, else of the message', async () => {
    const entry = ntry({ amount: '1' })
    const dated = (date: string) => entry.replace(BOOKING_DATE, date)
    const whole = (content: string) => linesOf(content).then(lines => lines.map(({ bookedOn }) => bookedOn))
    for (const zone of ['', 'Z', '+01:00', '-11:30'])
      expect(await whole(camt([dated(`<BookgDt><Dt>2026-11-23${zone}</Dt></BookgDt>`)]))).to.deep.equal(['2026-11-23'])
    expect(await whole(camt([dated('<ValDt><Dt>2026-11-24</Dt></ValDt>')]))).to.deep.equal(['2026-11-24'])
    const time = '<CreDtTm>2026-11-25T06:00:00</CreDtTm>'
    expect(await whole(camt([dated('')]).replace('<Acct>', `${time}<Acct>`))).to.deep.equal(['2026-11-25'])
    expect(await whole(camt([dated('')]).replace('</GrpHdr>', `${time}</GrpHdr>`))).to.deep.equal(['2026-11-25'])
  })

  it('give a booking with an id of the bank the same id in statements of other days', async () => {
    const entry = ntry({ amount: '1', bankId: 'B-1' }).replace(BOOKING_DATE, '')
    const idOn = async (day: string) => {
      const time = `<CreDtTm>${day}T06:00:00</CreDtTm>`
      const [line] = await linesOf(camt([entry]).replace('<Acct>', `${time}<Acct>`))
      return line && lineIdOf(line, 0)
    }
    expect(await idOn('2026-11-25')).to.equal(await idOn('2026-11-26'))
  })

  it('need no date, no amounts and no sum of an entry that is not booked', async () => {
    for (const status of ['PDNG', '<Cd>INFO</Cd>'])
      for (const date of ['', '<BookgDt><Dt>soon</Dt></BookgDt>']) {
        const entry = ntry({ amount: '1', status, parts: [{ amount: '3' }, {}] }).replace(BOOKING_DATE, date)
        const kinds = (await linesOf(camt([entry]))).map(({ kind, bookedOn }) => [kind, bookedOn])
        expect(kinds).to.deep.equal([
          ['not_booked', undefined],
          ['not_booked', undefined],
        ])
      }
  })

  it('are accepted with batches whose payments differ from the amount by charges, directions or currencies', async () => {
    const halves = [{ amount: '5' }, { amount: '5' }]
    const entries = [
      ntry({ amount: '9', head: charged('1'), parts: halves }),
      ntry({ amount: '10', head: charged('1'), parts: halves }),
      ntry({ amount: '9', parts: [{ amount: '5', more: charged('1') }, { amount: '5' }] }),
      ntry({ amount: '9', head: '<Chrgs><Amt Ccy="USD">1</Amt></Chrgs>', parts: halves }),
      ntry({ amount: '8', parts: [{ amount: '10' }, { amount: '2', more: OUT }] }),
      ntry({ amount: '1', head: charged('1', 'EUR'), parts: halves }),
      ntry({ amount: '1', head: '<Chrgs><Rcrd></Rcrd></Chrgs>', parts: halves }),
      ntry({ amount: '1', parts: [{ amount: '5', currency: 'EUR' }, { amount: '5' }] }),
    ]
    for (const entry of entries) expect(await linesOf(camt([entry]))).to.have.length(2)
  })

  it('distinguish reversals, returns, debits and entries that are not booked', async () => {
    const kinds = await Promise.all(
      [
        { amount: '1', direction: 'DBIT', head: '<RvslInd>true</RvslInd>' },
        { amount: '1', parts: [{ more: '<RtrInf><Rsn><Cd>AC04</Cd></Rsn></RtrInf>' }] },
        { amount: '1', direction: 'DBIT' },
        { amount: '1', status: 'PDNG' },
        { amount: '1', status: '<Cd>INFO</Cd>' },
        { amount: '1', status: '<Prtry>BOOK</Prtry>' },
      ].map(entry => one(ntry(entry as Parameters<typeof ntry>[0]))),
    )
    expect(kinds.map(({ kind }) => kind)).to.deep.equal([
      'reversal',
      'reversal',
      'debit',
      'not_booked',
      'not_booked',
      'credit',
    ])
  })

  it('give a booking the same id in overlapping statements, if the bank gives it one', async () => {
    const idIn = async (statement: string, bankId?: string) => {
      const entry = ntry({ amount: '1', parts: [{ text: 'R-1' }], ...(bankId && { bankId }) })
      const [line] = await linesOf(camt([entry], '02', statement))
      return line && lineIdOf(line, 0)
    }
    expect(await idIn('STMT-1', 'B-1')).to.equal(await idIn('STMT-2', 'B-1'))
    expect(await idIn('STMT-1', 'B-1')).to.not.equal(await idIn('STMT-1', 'B-2'))
    expect(await idIn('STMT-1')).to.not.equal(await idIn('STMT-2'))
  })

  it('leave elements of other namespaces out, and read CDATA and the five entities', async () => {
    const text = 'A &amp; B &#x41; <![CDATA[<R-1>]]>'
    const more = '<x:Ntry xmlns:x="urn:other"><Amt>bad</Amt></x:Ntry>'
    const line = await one(ntry({ amount: '1', parts: [{ text, more }] }))
    expect(line.texts).to.deep.equal(['A & B A <R-1>'])
  })

  for (const [name, content, complaint] of [
    [
      'an amount with digits that its currency lacks',
      camt([ntry({ amount: '1000.50', currency: 'JPY' })]),
      'Line 11: The amount 1000.50 has more digits after the point than JPY',
    ],
    [
      'an entry without a currency',
      camt([ntry({ amount: '1' }).replace(' Ccy="USD"', '')]),
      'Line 11: "" is no currency',
    ],
    [
      'an entry without a date in a statement without one',
      camt([ntry({ amount: '1' }).replace(BOOKING_DATE, '')]),
      'Line 10: Ntry has no BookgDt, and its statement no CreDtTm.',
    ],
    [
      'an entry without a direction',
      camt([ntry({ amount: '1' }).replace(/<CdtDbtInd>.*<\/CdtDbtInd>/, '')]),
      'Line 10: Ntry has no CdtDbtInd.',
    ],
    [
      'a batch with more money than its entry',
      camt([ntry({ amount: '1', parts: [{ amount: '1' }, { amount: '1' }] })]),
      'Line 10: The payments of the entry do not add up to its amount.',
    ],
    [
      'a batch with more money than its entry and its charges',
      camt([ntry({ amount: '9', head: charged('1'), parts: [{ amount: '5' }, { amount: '6' }] })]),
      'Line 10: The payments of the entry do not add up to its amount.',
    ],
    [
      'a batch with less money out than its entry needs',
      camt([ntry({ amount: '9', parts: [{ amount: '10' }, { amount: '2', more: OUT }] })]),
      'Line 10: The payments of the entry do not add up to its amount.',
    ],
    [
      'a batch with a payment without amount',
      camt([ntry({ amount: '1', parts: [{ amount: '1' }, {}] })]),
      'has no amount',
    ],
    ['another document', '<a xmlns="urn:b"/>', 'Line 1: This is no camt.053: its first element is a of "urn:b".'],
    ['no namespace', camt([]).replace(/ xmlns="[^"]*"/, ''), 'Line 2: This is no camt.053'],
    ['no element', '<?xml version="1.0"?>', 'it has no element'],
    [
      'an end in the middle',
      camt([ntry({ amount: '1' })]).slice(0, -60),
      'This is no well-formed XML: Unclosed root tag.',
    ],
    ['a wrong end tag', camt(['<Ntry></Amt></Ntry>']), 'Line 9: This is no well-formed XML: Unexpected close tag.'],
    ['an unknown entity', camt([ntry({ amount: '1', parts: [{ text: '&nbsp;' }] })]), 'This is no well-formed XML'],
    [
      'an expansion of entities',
      `<?xml version="1.0"?>\n<!DOCTYPE a [<!ENTITY b "bb">\n<!ENTITY c "&b;&b;">]>${camt([])}`,
      'Line 3: A document type declaration (DOCTYPE) is not accepted.',
    ],
    [
      'another encoding',
      '<?xml version="1.0" encoding="ISO-8859-1"?><a/>',
      'Line 1: The encoding ISO-8859-1 is not accepted: UTF-8.',
    ],
    ['endless nesting', camt(['<a>'.repeat(1_000)]), 'The elements are nested too deeply.'],
    [
      'an endless text',
      camt([ntry({ amount: '1', parts: [{ text: 'x'.repeat(20_000) }] })]),
      'The text of Ustrd is longer',
    ],
  ] as const)
    it(`are refused for ${name}`, async () => {
      expect(await refusal(content))
        .to.include(complaint)
        .and.to.match(/^Line \d+: .* Nothing was changed\.$/)
    })

  it('name payments in free texts by the whole text, by words with a digit, and by parts of marked fields', async () => {
    const { texts } = await one(ntry({ amount: '1', parts: [{ text: 'EREF+INV-2026-7, thanks (R-17). May 4' }] }))
    expect(namesInTexts({ texts } as never)).to.deep.equal([
      'EREF+INV-2026-7, thanks (R-17). May 4',
      'EREF+INV-2026-7',
      'INV-2026-7',
      'R-17',
    ])
  })
})
