import { appendFile, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { decimalOf } from '../../../../scripts/demo/money.ts'
import { openStatement } from '../../../../scripts/ledger/bankStatement/statementFile.ts'
import { lineIdOf, minorUnitsOf } from '../../../../scripts/ledger/bankStatement/statementLine.ts'
import { emptyFolder, tidyUp } from '../fixtures.ts'
import { rejectionOf } from '../../../support/rejection.ts'
import { camt, linesOf, listed, ntry, written } from './statements.ts'

const HEADER = 'booking_date,amount,currency,reference,text\n'

describe('files of bank statements', () => {
  after(tidyUp)

  const refusal = async (content: string | Uint8Array): Promise<string> => (await rejectionOf(linesOf(content))).message

  describe('in CSV', () => {
    it('are read with any delimiter, order of columns, line ends, quotes, and a byte order mark', async () => {
      const rows = [
        ['text', 'currency', 'amount', 'reference', 'booking_date'],
        ['"a ""b""; c, d"', 'USD', '10.5', 'R-1', '2026-11-20'],
        ['', 'JPY', '-1000', '', '2026-11-21'],
      ]
      for (const delimiter of [',', ';', '\t'])
        for (const end of ['\n', '\r\n']) {
          const lines = await linesOf(`\ufeff${rows.map(row => row.join(delimiter)).join(end)}`)
          expect(lines.map(({ identity: _, ...line }) => line)).to.deep.equal([
            {
              line: 2,
              kind: 'credit',
              bookedOn: '2026-11-20',
              amount: 1050n,
              currency: 'USD',
              references: ['R-1'],
              texts: ['a "b"; c, d'],
            },
            {
              line: 3,
              kind: 'debit',
              bookedOn: '2026-11-21',
              amount: 1000n,
              currency: 'JPY',
              references: [],
              texts: [],
            },
          ])
        }
    })

    for (const [name, row, complaint] of [
      [
        'digits that the currency lacks',
        '2026-11-20,1000.50,JPY,R,',
        'The amount 1000.50 has more digits after the point than JPY: 0.',
      ],
      ['a decimal comma', '2026-11-20,"10,50",USD,R,', '"10,50" is no decimal number with a point.'],
      ['an unknown currency', '2026-11-20,1,EURO,R,', '"EURO" is no currency'],
      ['a currency without minor unit', '2026-11-20,1,XAU,R,', '"XAU" is no currency'],
      ['a day that does not exist', '2026-02-30,1,USD,R,', '"2026-02-30" is not a date'],
      ['another form of a date', '20.11.2026,1,USD,R,', '"20.11.2026" is not a date'],
      ['no amount', '2026-11-20,,USD,R,', '"" is no decimal number'],
      ['an exponent', '2026-11-20,1e3,USD,R,', '"1e3" is no decimal number'],
      ['two signs', '2026-11-20,--1,USD,R,', '"-1" is no decimal number'],
      ['a missing cell', '2026-11-20,1,USD,R', 'This is no sound CSV'],
      ['an open quote', '2026-11-20,1,USD,"R,', 'This is no sound CSV'],
    ] as const)
      it(`are refused with the line for ${name}`, async () => {
        expect(await refusal(`${HEADER}2026-11-20,1,USD,R-0,\n${row}\n`))
          .to.include('Line 3: ')
          .and.to.include(complaint)
          .and.to.match(/Nothing was changed\.$/)
      })

    for (const [name, header, complaint] of [
      ['without a required column', 'booking_date,amount,reference', 'The header lacks currency.'],
      ['with a column twice', 'booking_date,amount,currency,reference,amount', 'The header has amount twice.'],
      ['with an unknown column', 'booking_date,amount,currency,reference,revesal', 'There is no column "revesal"'],
    ] as const)
      it(`are refused ${name}`, async () => {
        expect(await refusal(`${header}\n`)).to.include(`Line 1: ${complaint}`)
      })

    it('are accepted without rows, and refused when they are empty', async () => {
      expect(await linesOf(HEADER)).to.deep.equal([])
      expect(await refusal('')).to.include('Line 1: The file is empty.')
      expect(await refusal(' \n\n')).to.include('Line 1: The file is empty.')
    })

    it('have the line number on which each row begins, also after quoted texts of several lines', async () => {
      const texts = ['plain', '"two\nlines"', '', '"a\n\nb"', 'last']
      for (const end of ['\n', '\r\n', '\r']) {
        const rows = texts.map(text => (text === '' ? '' : `2026-11-20,1,USD,R,${text}`)).join('\n')
        const lines = await linesOf(`${HEADER}${rows}`.replaceAll('\n', end))
        expect(lines.map(({ line }) => line)).to.deep.equal([2, 3, 6, 9])
        const wrong = `${HEADER}${rows}\n2026-11-20,1,USD,"R\n\n"\n`.replaceAll('\n', end)
        expect(await refusal(wrong)).to.include('Line 10: This is no sound CSV')
      }
    })

    it('are read with reversals by their column', async () => {
      const lines = await linesOf('booking_date,amount,currency,reference,reversal\n2026-11-20,-1,USD,R,true\n')
      expect(lines.map(({ kind }) => kind)).to.deep.equal(['reversal'])
    })
  })

  it('are refused with the line where bytes are no UTF-8', async () => {
    const latin1 = Buffer.concat([
      Buffer.from(`${HEADER}2026-11-20,1,USD,R-0,x\n2026-11-20,1,USD,M`),
      Buffer.from([0xfc]),
    ])
    expect(await refusal(latin1)).to.include('Line 3: These bytes are no UTF-8.')
    const utf16 = Buffer.from(`\ufeff${HEADER}`, 'utf16le')
    expect(await refusal(utf16)).to.include('Line 1: These bytes are no UTF-8.')
  })

  it('are refused when they are changed while they are read', async () => {
    const path = await written(`${HEADER}2026-11-20,1,USD,R-0,x\n`)
    const file = await openStatement(path)
    await listed(file.lines())
    await appendFile(path, '2026-11-20,1,USD,R-1,x\n')
    const { message } = await rejectionOf(listed(file.lines()))
    await file.close()
    expect(message).to.include('was changed while it was read')
  })

  it('are refused when they are no regular files', async () => {
    const folder = await emptyFolder()
    await mkdir(join(folder, 'statements'))
    expect((await rejectionOf(openStatement(join(folder, 'statements')))).message).to.include('is not a regular file')
    expect((await rejectionOf(openStatement(join(folder, 'none')))).message).to.include('cannot be read (ENOENT)')
  })

  it('are read in chunks that end anywhere, also within a character', async () => {
    const texts = Array.from({ length: 20_000 }, (_, index) => `Müller €${index} 🦊`)
    const lines = await linesOf(camt(texts.map(text => ntry({ amount: '1.00', parts: [{ text }] }))))
    expect(lines.map(line => line.texts[0])).to.deep.equal(texts)
  })

  it('are read with exact minor units', () => {
    expect(minorUnitsOf('999999999999999999.99', 'USD', 1)).to.equal(99_999_999_999_999_999_999n)
    expect(minorUnitsOf('0.001', 'BHD', 1)).to.equal(1n)
    expect(minorUnitsOf('10.500', 'USD', 1)).to.equal(1050n)
    expect(minorUnitsOf('1000.00', 'JPY', 1)).to.equal(1000n)
    expect(minorUnitsOf('100', 'JPY', 1)).to.equal(100n)
    expect(['USD', 'JPY', 'BHD'].map(currency => decimalOf(5n, currency))).to.deep.equal(['0.05', '5', '0.005'])
  })

  it('are read with different ids for equal lines, the same at each reading', async () => {
    const content = `${HEADER}2026-11-20,1,USD,R,x\n2026-11-20,1,USD,R,x\n`
    const [[one, other], [again]] = [await linesOf(content), await linesOf(content)]
    if (one === undefined || other === undefined || again === undefined) throw new Error('Two lines each.')
    expect(lineIdOf(one, 0)).to.equal(lineIdOf(again, 0))
    expect(lineIdOf(one, 0)).to.not.equal(lineIdOf(other, 1))
    expect(lineIdOf(one, 0)).to.match(/^[A-Za-z0-9._-]{8,128}$/)
  })
})
