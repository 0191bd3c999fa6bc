import { expect } from 'chai'
import fc from 'fast-check'
import { bookingOf, ENTRY_KINDS } from '../../projections/bookings.ts'
import { entryIdOf, eventIdOfEntry } from '../../projections/bookViews.ts'
import { closingsOf } from '../../projections/closings.ts'
import type { BooksRows } from '../../projections/books/projection.ts'
import type { AnyEvent } from '../../streams/decider.ts'
import type { Recorded } from '../../streams/envelope.ts'
import { aggregates } from '../../streams/index.ts'
import { ACCOUNT_CODE, accountCode } from '../../src/feeds/accountCodes.ts'
import { id, invoiceApproved, invoiceVoided, orderCreated, orderInvoiced, terms } from '../streams/samples.ts'
import { recordedAs } from './histories.ts'
import { anyMoneySteps, bookedEvents, foldedBooks, logOf } from './moneyHistories.ts'

const sumOf = (amounts: readonly bigint[]): bigint => amounts.reduce((sum, amount) => sum + amount, 0n)

/** The sum of one account's postings up to a position. */
const sumAt = (books: BooksRows, account: string, direction: string, position: bigint): bigint =>
  sumOf(
    books.postings
      .filter(one => one.account === account && one.direction === direction && one.position <= position)
      .map(({ amount }) => amount),
  )

const ordered = [...recordedAs<AnyEvent>(id('ord'), [orderCreated, orderInvoiced()])].map((recorded, n) => ({
  ...recorded,
  position: BigInt(n),
}))

/** The entries of the event after an order with its invoice. */
const entriesAfter = (...events: readonly Recorded<AnyEvent>[]): BooksRows => foldedBooks([...ordered, ...events])

const at = (position: bigint, of: string, event: AnyEvent, revision = 1n): Recorded<AnyEvent> => ({
  ...(recordedAs<AnyEvent>(id('inv'), [event])[0] ?? expect.fail()),
  id: of,
  position,
  revision,
  eventId: `00000000-0000-8000-a000-${String(position).padStart(12, '0')}`,
})

const lines = ({ postings }: BooksRows, position: bigint): unknown[] =>
  postings
    .filter(one => one.position === position)
    .map(({ account, direction, amount }) => [direction, account, amount])

describe('the books', () => {
  describe('book', () => {
    it('an approval on the receivables of the customer, and its revenue', () =>
      expect(lines(entriesAfter(at(10n, id('inv'), invoiceApproved)), 10n)).to.deep.equal([
        ['debit', 'receivables.USD.C-17', 2500n],
        ['credit', 'revenue.USD', 2500n],
      ]))

    it('the void of an approved invoice as the reversal of its approval, and that of a draft not at all', () => {
      const books = entriesAfter(at(10n, id('inv'), invoiceApproved), at(11n, id('inv'), invoiceVoided, 2n))
      expect(books.entries.at(-1)?.reverses).to.equal(books.entries[0]?.event_id)
      expect(lines(books, 11n)).to.deep.equal([
        ['debit', 'revenue.USD', 2500n],
        ['credit', 'receivables.USD.C-17', 2500n],
      ])
      expect(entriesAfter(at(10n, id('inv'), invoiceVoided)).entries).to.deep.equal([])
    })

    it('an immediate payment at once, a refused one not at all', () => {
      const failed = {
        type: 'PaymentFailed',
        data: { ...terms('immediate'), code: 'payment_exceeds_due', held_by: null },
      }
      expect(entriesAfter(at(10n, id('pay'), failed)).entries).to.deep.equal([])
      const succeeded = { type: 'PaymentSucceeded', data: terms('immediate') }
      expect(lines(entriesAfter(at(10n, id('pay'), succeeded)), 10n)).to.deep.equal([
        ['debit', 'cash.USD', terms('immediate').amount],
        ['credit', 'receivables.USD.C-17', terms('immediate').amount],
      ])
    })

    it('a deferred payment as pending, and its failure as the reversal of that', () => {
      const { amount } = terms('deferred')
      const accepted = at(10n, id('pay'), { type: 'PaymentAccepted', data: terms('deferred') })
      const failed = { type: 'PaymentFailed', data: { ...terms('deferred'), code: 'bounced', held_by: null } }
      const books = entriesAfter(accepted, at(11n, id('pay'), failed, 2n))
      expect(books.entries.map(({ kind }) => kind)).to.deep.equal(['payment_pending', 'payment_failed'])
      expect(books.entries[1]?.reverses).to.equal(accepted.eventId)
      expect(books.balances.map(({ account, pending }) => [account, pending])).to.deep.equal([
        ['cash-in-clearing.USD', amount],
        ['receivables.USD.C-17', -amount],
        ['receivables.USD.C-17', 0n],
        ['cash-in-clearing.USD', 0n],
      ])
    })

    it('a settlement from clearing to cash, with no posting to the customer', () => {
      const accepted = at(10n, id('pay'), { type: 'PaymentAccepted', data: terms('deferred') })
      const settled = at(11n, id('pay'), { type: 'PaymentSucceeded', data: terms('deferred') }, 2n)
      const books = entriesAfter(accepted, settled)
      expect(lines(books, 11n).map(line => (line as unknown[])[1])).to.deep.equal(['cash.USD', 'cash-in-clearing.USD'])
      const customer = books.balances.filter(({ account }) => account.startsWith('receivables'))
      expect(customer.map(({ change, pending }) => [change, pending])).to.deep.equal([
        [-terms('deferred').amount, -terms('deferred').amount],
        [0n, 0n],
      ])
    })

    it('nothing for an invoice whose order they do not have', () =>
      expect(() => foldedBooks([at(10n, id('inv'), invoiceApproved)])).to.throw(id('inv')))

    it('no event of an aggregate that is no invoice and no payment', () => {
      const booked = ['InvoiceApproved', 'InvoiceVoided', 'PaymentAccepted', 'PaymentSucceeded', 'PaymentFailed']
      for (const { category, codec } of Object.values(aggregates))
        for (const type of codec.types) {
          if ([...booked, 'PaymentRefunded'].includes(type)) continue
          const recorded = { ...at(10n, id('pay'), { type, data: {} }), id: category }
          expect(bookingOf(recorded), type).to.equal(undefined)
        }
    })
  })

  it('of any history balance after every event, and each balance is the sum of the entries before it', () =>
    fc.assert(
      fc.asyncProperty(anyMoneySteps, async groups => {
        const books = foldedBooks(bookedEvents((await logOf(groups)).events))
        const balances = new Map<string, bigint>()
        for (const { position, currency } of books.entries) {
          const own = books.postings.filter(one => one.position === position)
          expect(new Set(own.map(one => one.currency))).to.deep.equal(new Set([currency]))
          for (const { direction, amount } of own)
            balances.set(currency, (balances.get(currency) ?? 0n) + (direction === 'debit' ? amount : -amount))
          expect(balances.get(currency), `${currency} after ${position}`).to.equal(0n)
        }
        for (const { account, position, debits, credits } of books.balances) {
          expect(debits).to.equal(sumAt(books, account, 'debit', position))
          expect(credits).to.equal(sumAt(books, account, 'credit', position))
        }
      }),
      { numRuns: 100 },
    ))

  it('of any history agree with the invoices: owed, pending, paid and refunded', () =>
    fc.assert(
      fc.asyncProperty(anyMoneySteps, async groups => {
        const log = await logOf(groups)
        const books = foldedBooks(bookedEvents(log.events))
        const last = log.head()
        const balanceOf = (account: string): bigint =>
          sumAt(books, account, 'debit', last) - sumAt(books, account, 'credit', last)
        const dataOf = (type: string): readonly Record<string, unknown>[] =>
          log.events.filter(event => event.type === type).map(({ data }) => data)
        const total = (type: string, member: string, currency: string): bigint =>
          sumOf(dataOf(type).flatMap(data => (data['currency'] === currency ? [BigInt(data[member] as number)] : [])))
        for (const currency of ['USD', 'JPY']) {
          const cash = total('PaymentSucceeded', 'amount', currency)
          const refunded = total('PaymentRefunded', 'refund_amount', currency)
          expect(balanceOf(`cash.${currency}`)).to.equal(cash)
          expect(balanceOf(`refunds-payable.${currency}`)).to.equal(-refunded)
          const receivable = [...new Set(books.postings.map(({ account }) => account))].filter(account =>
            account.startsWith(`receivables.${currency}`),
          )
          for (const account of receivable) expect(balanceOf(account) >= 0n, account).to.equal(true)
          const owed = sumOf(receivable.map(balanceOf))
          expect(owed + cash + balanceOf(`cash-in-clearing.${currency}`) - refunded).to.equal(
            -balanceOf(`revenue.${currency}`),
          )
        }
      }),
      { numRuns: 60 },
    ))

  it('have times that never go back, and never are later than the storage of the event', () =>
    fc.assert(
      fc.asyncProperty(anyMoneySteps, async groups => {
        const { events } = await logOf(groups)
        const { entries } = foldedBooks(bookedEvents(events))
        expect(entries.map(({ at: time }) => time)).to.deep.equal(entries.map(({ at: time }) => time).toSorted())
        const opened = new Set(closingsOf(bookedEvents(events)).map(({ first_open }) => first_open))
        for (const { at: time, position } of entries.filter(entry => !opened.has(entry.at)))
          expect(time <= (events.find(one => one.position === position)?.storedAt ?? '')).to.equal(true)
      }),
      { numRuns: 30 },
    ))

  it('have no new entry before a time that is three seconds past by the clock of the store', () =>
    fc.assert(
      fc.asyncProperty(anyMoneySteps, async groups => {
        const events = bookedEvents((await logOf(groups)).events).filter(({ event }) => event.type !== 'PeriodClosed')
        const whole = foldedBooks(events).entries
        for (const [index, { storedAt = '' }] of events.entries()) {
          const past = new Date(Date.parse(storedAt) - 3_000).toISOString()
          const { entries } = foldedBooks(events.slice(0, index + 1))
          const before = (all: typeof entries) => all.filter(({ at: time }) => time < past)
          expect(before(whole)).to.deep.equal(before(entries))
        }
      }),
      { numRuns: 30 },
    ))

  it('keep the entries of each closed period as they were at its closing', () =>
    fc.assert(
      fc.asyncProperty(anyMoneySteps, async groups => {
        const events = bookedEvents((await logOf(groups)).events)
        const { entries } = foldedBooks(events)
        for (const { position, complete_to, first_open } of closingsOf(events)) {
          const before = foldedBooks(events.filter(event => event.position < position))
          const inside = before.entries.filter(entry => entry.position <= complete_to && entry.at < first_open)
          expect(entries.filter(({ at: time }) => time < first_open)).to.deep.equal(inside)
        }
      }),
      { numRuns: 60 },
    ))

  it('have every kind of entry in these generated histories', async () => {
    const kinds = new Set<string>()
    for (const groups of fc.sample(anyMoneySteps, { numRuns: 60, seed: 17 }))
      for (const { kind } of foldedBooks(bookedEvents((await logOf(groups)).events)).entries) kinds.add(kind)
    expect([...kinds].toSorted()).to.deep.equal(Object.keys(ENTRY_KINDS).toSorted())
  })
})

describe('the code of an account', () => {
  it('ends with the token of the customer, and needs no escape in a URL', () => {
    const code = accountCode('receivables', 'USD', id('prs'))
    expect(code)
      .to.equal(`receivables.USD.${id('prs')}`)
      .and.to.match(ACCOUNT_CODE)
    expect(encodeURIComponent(code)).to.equal(code)
  })

  it('is that of all customers where the account is not per customer, and where the order has none', () => {
    expect(accountCode('cash', 'JPY', 'C-1')).to.equal('cash.JPY')
    expect(accountCode('receivables', 'JPY', null)).to.equal('receivables.JPY')
  })
})

describe('the id of an entry', () => {
  it('is made from the id of its event, and leads back to it', () =>
    fc.assert(
      fc.property(fc.uuid(), eventId => {
        expect(eventIdOfEntry(entryIdOf(eventId))).to.equal(eventId)
      }),
    ))

  it('is refused if no event can have it', () => {
    expect(eventIdOfEntry(`ent_${'Z'.repeat(26)}`)).to.equal(undefined)
    expect(eventIdOfEntry(id('inv'))).to.equal(undefined)
  })
})
